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
<main>
  <p class="notice-bar" id="notice" role="alert" hidden></p>
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
<dialog id="confirm" aria-labelledby="confirm-title" aria-describedby="confirm-text">
  <h2 id="confirm-title"></h2><p id="confirm-text"></p><div class="line" id="confirm-buttons"></div>
</dialog>`;

export const DASHBOARD_STYLE = `
.bar { position: sticky; top: 0; z-index: 1; }
#pools, .lists { display: grid; gap: 16px; min-width: 0; align-content: start; grid-template-columns: minmax(0, 1fr); }
main { max-width: 1600px; margin: 0 auto; padding: 16px; display: grid; gap: 16px; grid-template-columns: minmax(0, 1fr); }
.sums { display: flex; gap: 2px 18px; flex-wrap: wrap; }
.sums div { display: flex; flex-direction: row-reverse; align-items: baseline; gap: 5px; }
.sums dt { color: var(--dim); font-size: 13px; }
.sums dd { font-size: 17px; font-weight: 650; font-variant-numeric: tabular-nums; }
#filter {
  width: 220px; min-height: 32px; padding: 0 10px; border: 1px solid var(--line); border-radius: 8px; background: var(--raised);
}
#filter::placeholder { color: var(--dim); opacity: 1; }
.notice-bar { padding: 10px 16px; border-radius: 12px; background: var(--bad-soft); color: var(--bad); }
.pool { overflow: hidden; }
.pool > header { display: flex; align-items: center; gap: 6px 14px; flex-wrap: wrap; padding: 12px 16px 8px; }
.pool h2 { font-size: 15px; overflow-wrap: anywhere; }
.pool .counts { color: var(--dim); font-size: 13px; }
.tiles { display: flex; flex-wrap: wrap; gap: 3px; flex: 1; min-width: 140px; justify-content: flex-end; }
.tiles i { width: 12px; height: 12px; border-radius: 3px; background: var(--line); }
.tiles .leased { background: var(--accent); }
.tiles .idle { background: color-mix(in srgb, var(--good) 45%, var(--panel)); }
.tiles .starting { background: none; border: 1.5px dashed var(--dim); }
.tiles .waiting { background: var(--warn); border-radius: 50%; }
.waits { margin: 0; padding: 0 16px 12px; display: flex; align-items: flex-end; gap: 4px 12px; flex-wrap: wrap; }
.waits .bars {
  display: flex; align-items: flex-end; gap: 1px; width: 240px; height: 26px; border-bottom: 1px solid var(--line);
}
.waits i { flex: 1; background: var(--warn); border-radius: 1px 1px 0 0; }
.waits figcaption { color: var(--dim); font-size: 12px; }
.cards {
  display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 300px), 1fr)); gap: 12px; padding: 12px 16px 16px;
  border-top: 1px solid var(--line); align-items: start;
}
.cards:empty { display: none; }
.card {
  display: flex; flex-direction: column; border: 1px solid var(--line); border-radius: 10px; overflow: hidden;
  background: var(--raised); min-width: 0;
}
.shot { position: relative; aspect-ratio: 21 / 9; background: var(--line); border-bottom: 1px solid var(--line); }
.shot img { position: absolute; width: 100%; height: 100%; object-fit: cover; object-position: top; background: #fff; }
.idle .shot { opacity: .6; }
.body { display: grid; gap: 6px; padding: 10px 12px 12px; grid-template-columns: minmax(0, 1fr); flex: 1; align-content: start; }
.line { display: flex; align-items: center; gap: 6px 10px; flex-wrap: wrap; }
.line:empty { display: none; }
.line button { min-height: 28px; font-size: 13px; }
.body > .line { font-size: 13px; }
strong { font-weight: 650; overflow-wrap: anywhere; }
.page { display: grid; font-size: 13px; align-content: start; }
.page b, .page span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; font-weight: 500; }
.page span { color: var(--dim); font-family: var(--mono); font-size: 12px; }
.rows li {
  display: flex; align-items: center; gap: 4px 12px; flex-wrap: wrap; padding: 7px 16px; border-top: 1px solid var(--line);
}
.rows li:hover { background: var(--raised); }
.rows .name { display: flex; gap: 4px 8px; flex-wrap: wrap; align-items: center; flex: 1 1 200px; min-width: 0; }
.rows .links { display: flex; gap: 12px; margin-left: auto; }
.table li { font-size: 13px; }
.table li > * { order: 1; }
.table .state, .table .name, .table .links { order: 0; }
.table .name { flex-basis: 150px; }
.table .state { min-width: 96px; }
.table .links { min-width: 48px; justify-content: end; }
.tag {
  padding: 0 7px; border-radius: 5px; background: var(--panel); border: 1px solid var(--line); font-size: 12px;
  color: var(--dim); overflow-wrap: anywhere;
}
.empty { padding: 14px 16px; color: var(--dim); border-top: 1px solid var(--line); }
.title { padding: 12px 16px; }
dialog {
  width: min(440px, calc(100vw - 32px)); padding: 20px 22px; border: 1px solid var(--line); border-radius: 12px;
  background: var(--panel); color: var(--ink); box-shadow: var(--shadow);
}
dialog::backdrop { background: rgb(0 0 0 / 45%); }
dialog h2 { font-size: 16px; margin-bottom: 6px; overflow-wrap: anywhere; }
dialog .line { justify-content: flex-end; margin-top: 16px; }
dialog .danger { background: var(--bad); border-color: transparent; color: var(--panel); }
dialog .danger:hover:enabled { background: var(--bad); filter: brightness(1.08); }
@media (min-width: 1200px) {
  main { grid-template-columns: minmax(0, 1fr) 424px; align-items: start; }
}
@media (min-width: 1000px) and (max-width: 1199px) {
  .table li { display: grid; grid-template-columns: 118px minmax(0, 1fr) 130px 80px 110px 160px 72px; }
  .table li > * { order: 0; }
  .table .name { flex-wrap: nowrap; overflow: hidden; }
}
@media (max-width: 600px) {
  .bar { position: static; }
  main { padding: 10px; gap: 10px; }
  #filter { width: 100%; }
}
`;
