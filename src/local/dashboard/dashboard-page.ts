import { LOGO } from '../../shared/page/page.js';
import type { Answer } from '../http/answer.js';
import { pageAnswer } from '../http/page.js';

/** The page behind `LocalPool.dashboardUrl`. */
export function dashboardPage(): Answer {
  return pageAnswer({ title: 'Pools', name: 'dashboard', body: BODY });
}

const BODY = `
<header class="bar">
  ${LOGO}<h1>Browser pools</h1><span class="badge" id="state" role="status">Connecting</span><span class="grow"></span>
  <dl class="sums" id="sums"></dl>
  <input type="search" id="filter" placeholder="Filter by name or tag" aria-label="Filter by name or tag">
</header>
<main class="content">
  <p class="panel empty fault" id="notice" role="alert" hidden></p>
  <div id="pools"></div>
  <div class="lists">
  <section class="panel pool" aria-labelledby="ended-title">
    <h2 class="title" id="ended-title">Finished leases</h2>
    <ul class="rows table" id="ended" aria-labelledby="ended-title" hidden></ul>
    <p class="empty" id="no-ended">There are no finished leases.</p>
  </section>
  <section class="panel pool" aria-labelledby="replays-title">
    <h2 class="title" id="replays-title">Replays</h2>
    <ul class="rows table" id="replays" aria-labelledby="replays-title" hidden></ul>
    <p class="empty" id="no-replays">There are no recordings.</p>
  </section>
  </div>
</main>
<dialog class="panel" id="confirm" aria-labelledby="confirm-title" aria-describedby="confirm-text">
  <h2 id="confirm-title"></h2><p id="confirm-text"></p><div class="line" id="confirm-buttons"></div>
</dialog>`;

export const DASHBOARD_STYLE = `
#pools, .lists { display: grid; gap: inherit; min-width: 0; align-content: start; grid-template-columns: minmax(0, 1fr); }
.content { max-width: 1600px; }
.sums { display: flex; gap: 2px 18px; flex-wrap: wrap; }
.sums div { display: flex; flex-direction: row-reverse; align-items: baseline; gap: 5px; }
.sums dt, .counts { color: var(--dim); font-size: 13px; }
.sums dd { font-size: 17px; font-weight: 650; font-variant-numeric: tabular-nums; }
.pool { overflow: hidden; }
.pool > header { display: flex; align-items: center; gap: 6px 14px; flex-wrap: wrap; padding: 12px 16px 8px; }
.tiles { display: flex; flex-wrap: wrap; gap: 3px; flex: 1; min-width: 140px; justify-content: flex-end; }
.tiles i { width: 12px; height: 12px; border-radius: 3px; background: var(--line); }
.tiles .leased { background: var(--accent); }
.tiles .idle { background: color-mix(in srgb, var(--good) 45%, var(--panel)); }
.tiles .starting { background: none; border: 1.5px dashed var(--dim); }
.tiles .waiting { background: var(--warn); border-radius: 50%; }
.waits { padding: 0 16px 12px; display: flex; align-items: flex-end; gap: 4px 12px; flex-wrap: wrap; }
.waits .bars { display: flex; align-items: flex-end; gap: 1px; width: 240px; height: 26px; border-bottom: 1px solid var(--line); }
.waits i { flex: 1; background: var(--warn); border-radius: 1px 1px 0 0; }
.cards {
  display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 300px), 1fr)); gap: 12px; padding: 12px 16px 16px;
  border-top: 1px solid var(--line); align-items: start;
}
.cards:empty, .line:empty { display: none; }
.card { border: 1px solid var(--line); border-radius: 10px; overflow: hidden; background: var(--raised); min-width: 0; }
.shot { position: relative; aspect-ratio: 21 / 9; background: var(--line); border-bottom: 1px solid var(--line); }
.shot img { position: absolute; width: 100%; height: 100%; object-fit: cover; object-position: top; background: #fff; }
.idle .shot { opacity: .6; }
.body { display: grid; gap: 6px; padding: 10px 12px 12px; grid-template-columns: minmax(0, 1fr); font-size: 13px; }
.body button { min-height: 28px; }
.body .danger { margin-left: auto; }
.page { display: grid; }
.page b, .page span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; font-weight: 500; }
.rows li {
  display: flex; align-items: center; gap: 4px 12px; flex-wrap: wrap; padding: 7px 16px; border-top: 1px solid var(--line);
}
.rows li:hover { background: var(--raised); }
.table li { font-size: 13px; }
.table li > * { order: 1; }
.table .state, .table .name, .table .links { order: 0; }
.table .name { flex: 1 1 150px; min-width: 0; }
.table .state { min-width: 96px; }
.table .links { display: flex; gap: 12px; margin-left: auto; min-width: 48px; justify-content: end; }
.lists .empty { border-top: 1px solid var(--line); }
.title { padding: 12px 16px; }
dialog { width: min(440px, calc(100vw - 32px)); padding: 20px 22px; color: var(--ink); }
dialog::backdrop { background: rgb(0 0 0 / 45%); }
dialog p { margin: 6px 0 16px; }
dialog .line { justify-content: flex-end; }
@media (min-width: 1200px) {
  .content { grid-template-columns: minmax(0, 1fr) 424px; align-items: start; }
}
@media (min-width: 1000px) and (max-width: 1199px) {
  .table li { display: grid; grid-template-columns: 118px minmax(0, 1fr) 130px 80px 110px 160px 72px; }
  .table li > * { order: 0; }
  .table .name { flex-wrap: nowrap; overflow: hidden; }
}
`;
