import { ICONS, LOGO } from './icons.js';

/** The replay viewer before its script has filled it. */
export const REPLAY_BODY = `
<header class="bar">
  ${LOGO}<h1 id="title">Replay</h1><span class="badge" id="state" role="status">Loading</span>
  <span class="grow"></span><a class="button" id="download" download hidden>Download</a>
</header>
<main>
  <section class="stage panel" id="stage" aria-label="Film">
    <div class="screen" id="screen">
      <video id="film" playsinline muted preload="auto" aria-label="Film of the session" hidden></video>
      <div class="state" id="message"><h2 id="message-title">Loading</h2><p id="message-text"></p></div>
    </div>
    <div class="controls" id="controls" hidden>
      <div class="scrub">
        <div class="marks" id="marks" aria-hidden="true"></div>
        <div class="rail"></div><div class="played" id="played"></div>
        <input type="range" id="position" min="0" max="0" step="10" value="0" aria-label="Position in the film">
      </div>
      <div class="row">
        <button class="play" id="play" aria-label="Play">${ICONS.play}</button>
        <button class="play" id="pause" aria-label="Pause" hidden>${ICONS.pause}</button>
        <button class="icon" id="previous" aria-label="Previous event" title="Previous event (p)">${ICONS.back}</button>
        <button class="icon" id="next" aria-label="Next event" title="Next event (n)">${ICONS.forward}</button>
        <span class="time" id="time">0:00.0 / 0:00.0</span>
        <span class="grow"></span>
        <label class="row"><span class="dim">Speed</span>
          <select id="speed"><option value="0.25">¼×</option><option value="0.5">½×</option>
          <option value="1" selected>1×</option><option value="2">2×</option><option value="4">4×</option>
          <option value="8">8×</option></select></label>
        <button class="icon" id="full" aria-label="Full screen" title="Full screen (f)">${ICONS.full}</button>
      </div>
      <p class="keys"><span><kbd>space</kbd> play, pause</span><span><kbd>←</kbd> <kbd>→</kbd> 5 s</span>
        <span><kbd>p</kbd> <kbd>n</kbd> events</span><span><kbd>[</kbd> <kbd>]</kbd> speed</span>
        <span><kbd>f</kbd> full screen</span></p>
    </div>
  </section>
  <div class="side">
    <section class="timeline panel" aria-labelledby="timeline-title">
      <header><h2 id="timeline-title">What happened</h2>
        <div class="filters" id="filters" role="group" aria-label="Show"></div></header>
      <ol class="entries" id="entries"></ol>
    </section>
    <section class="facts panel" aria-labelledby="facts-title">
      <h2 id="facts-title">Session</h2><dl id="facts"></dl>
    </section>
  </div>
</main>`;
