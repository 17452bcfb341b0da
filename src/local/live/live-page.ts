import { ADDRESS_BAR, SCREEN, TABS } from '../../live/live-markup.js';
import { LOGO } from '../../shared/page/page.js';
import { pageAnswer } from '../http/page.js';
import type { Answer } from '../http/answer.js';
import type { ServedLeaseEnd } from '../pool/served-lease.js';

/** What the page of a live view shows about its lease. */
export interface LiveFacts {
  readonly sessionId: string;
  readonly leaseName: string | undefined;
  /** How the lease ended. */
  readonly outcome: ServedLeaseEnd | undefined;
  /** In milliseconds. */
  readonly duration: number | undefined;
  /** URLs of the recordings. */
  readonly replays: readonly string[];
}

/** The page behind `browser_live_view_url`. After the lease ended, the page still opens, and explains how it ended. */
export function livePage(isEnded: boolean): Answer {
  return pageAnswer({ title: 'Live view', name: 'live', body: isEnded ? ENDED_BODY : BODY });
}

const CONNECTING = '<span class="badge pulse" id="state" role="status">Connecting</span>';

const BODY = `
<header>
${TABS}
<div class="bar tools">
  <h1 class="visually-hidden">Live view</h1>
  ${ADDRESS_BAR}
  ${CONNECTING}
  <a class="button" id="mode" hidden></a>
</div>
</header>
<main class="view" id="view">
  ${SCREEN}
  <div class="over" id="over" hidden><div class="panel notice"><h2 id="over-title"></h2><p id="over-text"></p>
    <p class="line" id="over-links"></p></div></div>
</main>
<footer class="bar foot small">${LOGO}<strong id="lease"></strong><span>Session <code id="session"></code></span><span class="grow"></span>
  <span id="hint"></span></footer>`;

/** The script opens no WebSocket. */
const ENDED_BODY = BODY.replace(
  CONNECTING,
  '<span class="badge bad" id="state" role="status" data-ended>Ended</span>',
);
