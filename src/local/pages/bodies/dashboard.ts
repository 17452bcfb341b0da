import { LOGO } from './icons.js';

/** The dashboard before its script has filled it. */
export const DASHBOARD_BODY = `
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
    <p class="empty" id="no-replays">Nothing has been recorded yet.</p>
  </section>
</main>`;
