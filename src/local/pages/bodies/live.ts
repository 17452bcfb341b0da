import { ICONS, LOGO } from './icons.js';

/** The live view before its script has filled it. */
export const LIVE_BODY = `
<div class="tabs" id="tabs" role="tablist" aria-label="Pages of the browser"></div>
<header class="bar tools">
  <h1 class="visually-hidden">Live view</h1>
  <button class="icon" id="back" disabled aria-label="Back">${ICONS.back}</button>
  <button class="icon" id="forward" disabled aria-label="Forward">${ICONS.forward}</button>
  <button class="icon" id="reload" disabled aria-label="Reload">${ICONS.reload}</button>
  <form id="go"><input id="address" type="text" readonly inputmode="url" autocomplete="off" spellcheck="false" aria-label="Address"></form>
  <span class="badge" id="state" role="status">Connecting</span>
  <a class="button" id="mode" hidden></a>
</header>
<main class="view" id="view">
  <textarea id="keyboard" autocapitalize="off" autocomplete="off" spellcheck="false"
    aria-label="Keyboard of the page; Shift and Escape leave it" hidden></textarea>
  <canvas id="screen" width="1280" height="720" role="img" aria-label="The browser's page"></canvas>
  <div class="over" id="over" hidden><div class="panel"><h2 id="over-title"></h2><p id="over-text"></p></div></div>
</main>
<footer class="bar foot">${LOGO}<span>Session <code id="session"></code></span><span class="grow"></span>
  <span id="hint"></span></footer>`;
