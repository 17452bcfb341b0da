import { ADDRESS_BAR, LIVE_STYLE, SCREEN, TABS } from '../../live/live-markup.js';
import { ICON_PATH, LOGO, LOGO_SVG, pageHtml, readScript } from '../../shared/page/page.js';
import { BASE_STYLE } from '../../shared/page/style.js';

/** What the page shows, besides the browser. */
export interface HandoffFacts {
  readonly message: string;
  /** Of the lease. */
  readonly name?: string;
  readonly sessionId: string;
  readonly liveViewUrl?: string;
  /** What happened, if the hand-off is over. */
  readonly end?: string;
}

const HEAD = `<title>A person is needed</title>
<link rel="icon" href="icon.svg">
<link rel="stylesheet" href="base.css">
<link rel="stylesheet" href="handoff.css">
<script type="module" src="handoff.js"></script>`;

const VIEW = `<section class="browser watching" id="browser" aria-label="The browser">
  ${TABS}
  <div class="bar tools">
    ${ADDRESS_BAR}
    <div id="options"></div>
    <span class="badge pulse" id="state" role="status">Connecting</span>
    <button id="control" disabled>Use the browser</button>
  </div>
  <div class="view" id="view">
    ${SCREEN}
    <div id="questions" role="region" aria-label="Questions of the page" aria-live="polite"></div>
  </div>
  <p class="hint small" id="hint">You only watch. With "Use the browser", your mouse and keyboard act there.</p>
</section>`;

/** The page of a hand-off. It contains nothing of the hand-off: its script fetches the content. */
export function handoffPage(hasView: boolean): string {
  const body = `<main>
<section class="ask bar" id="ask">
  <div class="what"><h1 class="line">${LOGO.replace(ICON_PATH, 'icon.svg')}A person is needed</h1><p id="message"></p>
    <p class="dim">The program waits for your answer. <span id="lease" hidden>Browser <b id="name"></b>.</span> Session <code id="session"></code></p>
    ${hasView ? '' : '<p class="dim">This page cannot show the browser.</p>'}</div>
  <form id="answer">
    <label for="note">Note for the program</label>
    <textarea id="note" rows="2" maxlength="10000"></textarea>
    <p class="line"><button class="primary" id="done" value="done">Done</button>
      <button id="declined" value="declined">Cannot be done</button>
      <a class="button" id="link" target="_blank" rel="noreferrer" hidden>Open the browser</a></p>
    <p class="panel empty fault" id="fault" role="alert" hidden></p>
  </form>
</section>
${hasView ? VIEW : ''}
<section class="notice" id="over" role="status" tabindex="-1" hidden><h1>The hand-off is over</h1><p id="over-text"></p></section>
</main>`;
  return pageHtml(HEAD, body);
}

const STYLE = `
main { display: flex; flex-direction: column; flex: 1; }
.ask { align-items: flex-start; gap: 12px 24px; }
.what { flex: 1 1 300px; min-width: 0; }
#message { font-size: 16px; white-space: pre-wrap; overflow-wrap: anywhere; margin: 4px 0; }
#answer { flex: 1 1 300px; max-width: 520px; display: grid; gap: 6px; }
.browser { display: flex; flex-direction: column; flex: 1; min-height: 420px; }
.browser.watching .view { cursor: not-allowed; }
.hint { padding: 6px 14px; }
#questions { position: absolute; inset: auto 12px 12px; display: grid; gap: 8px; justify-items: center; max-height: 100%; overflow-y: auto; }
#questions form { display: grid; gap: 8px; width: min(100%, 520px); padding: 14px 18px; overflow-wrap: anywhere; }
#questions input { width: 100%; }
#options select { max-width: 220px; }
`;

const ASSETS: Readonly<Record<string, readonly [type: string, text: () => string | Promise<string>]>> = {
  'icon.svg': ['image/svg+xml', () => LOGO_SVG],
  'base.css': ['text/css', () => BASE_STYLE],
  'handoff.css': ['text/css', () => LIVE_STYLE + STYLE],
  'handoff.js': ['text/javascript', () => readScript('handoff.js')],
};

/** A script, a style or an image of the page. */
export async function assetOf(path: string): Promise<{ type: string; text: string } | undefined> {
  const [type, text] = Object.hasOwn(ASSETS, path) ? ASSETS[path]! : [];
  return type === undefined || !text ? undefined : { type, text: await text() };
}
