import type { Answer } from '../http/answer.js';
import { invalidLink, jwtOf, LOGO, pageAnswer, type PageCall } from './page.js';

/** GET /: the page behind `LocalPool.dashboardUrl`. */
export async function dashboardPage({ query, pools }: PageCall): Promise<Answer> {
  if (!(await pools.tokens.verifyDashboard(jwtOf(query)))) throw invalidLink();
  return pageAnswer({ title: 'Pools', name: 'dashboard', body: BODY });
}

const BODY = `
<header class="bar">
  ${LOGO}<h1>Browser pools</h1><span class="badge" id="state" role="status">Connecting</span><span class="grow"></span>
  <dl class="sums" id="sums"></dl>
</header>
<main>
  <div id="pools"></div>
  <section class="panel pool" aria-labelledby="replays-title">
    <h2 class="title" id="replays-title">Replays</h2>
    <div class="scroll" tabindex="0" role="region" aria-labelledby="replays-title"><table id="replay-table" hidden>
      <thead><tr><th class="kind">State</th><th>Lease</th><th class="lease">Pool</th><th class="session">Session</th>
        <th class="connections">Started</th><th class="for end">Length</th><th class="view end">Replay</th></tr></thead>
      <tbody id="replays"></tbody></table></div>
    <p class="empty" id="no-replays">There are no recordings.</p>
  </section>
</main>`;

export const DASHBOARD_STYLE = `
.bar { position: sticky; top: 0; z-index: 1; }
#pools { display: grid; gap: 16px; }
main { max-width: 1480px; margin: 0 auto; padding: 16px; display: grid; gap: 16px; }
.sums { display: flex; gap: 18px; flex-wrap: wrap; }
.sums div { display: flex; flex-direction: row-reverse; align-items: baseline; gap: 5px; }
.sums dt { color: var(--dim); font-size: 13px; }
.sums dd { font-size: 17px; font-weight: 650; font-variant-numeric: tabular-nums; }
.pool { overflow: hidden; }
.pool > header { display: flex; align-items: center; gap: 6px 14px; flex-wrap: wrap; padding: 12px 16px; }
.pool h2 { font-size: 15px; }
.pool .counts { color: var(--dim); font-size: 13px; }
.tiles { display: flex; flex-wrap: wrap; gap: 3px; flex: 1; min-width: 140px; justify-content: flex-end; }
.tiles i { width: 12px; height: 12px; border-radius: 3px; background: var(--line); }
.tiles .leased { background: var(--accent); }
.tiles .idle { background: color-mix(in srgb, var(--good) 45%, var(--panel)); }
.tiles .starting { background: none; border: 1.5px dashed var(--dim); }
.tiles .waiting { background: var(--warn); border-radius: 50%; }
.scroll { overflow-x: auto; }
table { width: 100%; min-width: 860px; border-collapse: collapse; table-layout: fixed; }
.state { width: 124px; } .for { width: 108px; } .lease { width: 20%; } .session { width: 118px; } .connections { width: 124px; }
.view { width: 156px; } .view a + a { margin-left: 12px; } .kind { width: 150px; }
th, td { padding: 3px 16px; text-align: left; border-top: 1px solid var(--line); height: 30px; overflow-wrap: anywhere; }
th { height: 28px; white-space: nowrap; font-size: 12px; font-weight: 600; color: var(--dim); background: var(--raised); }
td.end, th.end { text-align: right; }
tr.idle td { color: var(--dim); }
tbody tr:hover td { background: var(--raised); }
.tag { display: inline-block; margin: 1px 4px 1px 0; padding: 0 7px; border-radius: 5px; background: var(--raised); border: 1px solid var(--line); font-size: 12px; color: var(--dim); }
.empty { padding: 14px 16px; color: var(--dim); border-top: 1px solid var(--line); }
.title { padding: 12px 16px; font-size: 15px; }
`;
