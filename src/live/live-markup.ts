import { ICONS } from '../shared/page/page.js';

/** The parts of a page with a live view, which its script fills. */
export const TABS = '<div class="tabs" id="tabs" role="tablist" aria-label="Pages of the browser"></div>';

export const ADDRESS_BAR = `<button class="icon" id="back" disabled aria-label="Back">${ICONS.back}</button>
  <button class="icon" id="forward" disabled aria-label="Forward">${ICONS.forward}</button>
  <button class="icon" id="reload" disabled aria-label="Reload">${ICONS.reload}</button>
  <form id="go"><input id="address" type="text" readonly inputmode="url" autocomplete="off" spellcheck="false" aria-label="Address"></form>`;

export const SCREEN = `<textarea id="keyboard" autocapitalize="off" autocomplete="off" spellcheck="false"
    aria-label="Keyboard input for the page. Press Shift and Escape to leave." hidden></textarea>
  <canvas id="screen" width="1280" height="720" role="img" aria-label="The page of the browser"></canvas>`;

export const LIVE_STYLE = `
body { height: 100%; }
.tabs { display: flex; gap: 4px; padding: 8px 12px 0; min-height: 42px; background: var(--raised); overflow-x: auto; }
.tabs button {
  max-width: 240px; min-width: 90px; min-height: 34px; border-color: transparent; border-bottom: 0;
  border-radius: 9px 9px 0 0; background: none; color: var(--dim);
}
.tabs button span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.tabs button[aria-selected="true"] { background: var(--panel); border-color: var(--line); color: var(--ink); }
.tools { padding: 8px 12px; gap: 6px; }
.tools form { flex: 1; min-width: 160px; }
.tools .icon { border-color: transparent; }
.tools input { width: 100%; border-radius: 99px; font: 13px var(--mono); }
.view {
  position: relative; flex: 1; min-height: 0; display: grid; place-items: center; padding: 12px; overflow: hidden;
  container-type: size;
}
canvas {
  --ratio: 16 / 9; width: min(100cqw, 100cqh * var(--ratio)); height: auto; background: #fff; border-radius: 6px; box-shadow: 0 0 0 1px var(--line), var(--shadow);
  touch-action: none; cursor: default;
}
#keyboard { position: absolute; width: 1px; height: 1px; min-height: 0; padding: 0; border: 0; opacity: 0; resize: none; pointer-events: none; }
#keyboard:focus ~ canvas { outline: 3px solid var(--accent); outline-offset: 1px; }
canvas:not([data-pictures]) { visibility: hidden; }
.watching canvas { cursor: not-allowed; }
.over { position: absolute; inset: 0; padding: 16px; display: grid; place-items: center; background: color-mix(in srgb, var(--bg) 82%, transparent); }
.over .panel { margin: 0; padding: 22px 28px; }
.over .line { justify-content: center; }
.foot { border: 0; border-top: 1px solid var(--line); padding: 6px 14px; }
`;
