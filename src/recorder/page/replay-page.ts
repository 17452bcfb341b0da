import { ICONS, LOGO } from '../../shared/page/page.js';
import type { TimelineEntry } from '../timeline.js';
import type { Video } from '../video-file.js';

/** `writing`: the recording ended, and its video is not complete. `none`: there is no video. */
export type RecordingState = 'recording' | 'writing' | 'ready' | 'none';

export interface RecordedSession {
  readonly sessionId: string;
  /** The session can have several leases, one after another. */
  readonly leaseId: string;
  readonly leaseName?: string | undefined;
  readonly tags?: Readonly<Record<string, string>> | undefined;
  readonly pool: string;
  /** Name of the service, such as `kernel`. */
  readonly service?: string | undefined;
}

/** Pictures of a recording that has no video, because nothing could encode one. */
export interface ReplayPictures {
  /** In milliseconds. */
  readonly length: number;
  readonly frames: readonly {
    /** Milliseconds since the recording started. */
    readonly at: number;
    /** Path beside the page, or a `data:` URL. */
    readonly source: string;
  }[];
}

/** What became of pictures with something that a recording may not show: a box covers it, or there is no picture. */
export type MaskedPictures = 'covered' | 'left-out';

/** What the page of a recording shows beside the video. */
export interface ReplayFacts extends Omit<RecordedSession, 'leaseId'> {
  readonly state: RecordingState;
  readonly replayId: string;
  /** In ISO 8601. */
  readonly startedAt: string;
  readonly finishedAt: string | undefined;
  readonly failure: string | undefined;
  readonly timeline: readonly TimelineEntry[];
  readonly video: Omit<Video, 'path'> | undefined;
  readonly pictures?: ReplayPictures | undefined;
  /** Whether the lease, or a part of it, failed. Missing until the end. */
  readonly result?: 'succeeded' | 'failed' | undefined;
  /** Missing if no picture was masked. */
  readonly masked?: MaskedPictures | undefined;
}

export const REPLAY_BODY = `
<header class="bar">
  ${LOGO}<h1 id="title">Replay</h1><span class="badge" id="state" role="status">Loading</span>
  <span class="grow"></span><a class="button" id="download" download hidden>Download</a>
</header>
<main class="content">
  <section class="stage panel" id="stage" aria-label="Video">
    <div class="screen" id="screen">
      <video id="video" playsinline muted preload="auto" aria-label="Video of the session" hidden></video>
      <img id="picture" alt="Pictures of the session" hidden>
      <div class="notice" id="message"><h2 id="message-title">Loading</h2><p id="message-text"></p></div>
    </div>
    <p class="masked small" id="masked" hidden></p>
    <div class="controls events-only" id="controls" hidden>
      <div class="flags" id="flags" aria-hidden="true" hidden></div>
      <div class="scrub plays">
        <div class="marks" id="marks" aria-hidden="true"></div>
        <div class="rail"></div><div class="played" id="played"></div>
        <input type="range" id="position" min="0" max="0" step="10" value="0" aria-label="Position in the video">
      </div>
      <div class="line">
        <button class="primary play plays" id="play" aria-label="Play">${ICONS.play}</button>
        <button class="primary play plays" id="pause" aria-label="Pause" hidden>${ICONS.pause}</button>
        <button class="icon" id="previous" aria-label="Previous event" title="Previous event (p)">${ICONS.back}</button>
        <button class="icon" id="next" aria-label="Next event" title="Next event (n)">${ICONS.forward}</button>
        <span class="time plays" id="time">0:00.0 / 0:00.0</span>
        <span class="grow"></span>
        <button class="icon" id="previous-failure" aria-label="Previous failure" title="Previous failure" hidden>${ICONS.back}</button>
        <button class="fault" id="failure" title="Next failure (e)" hidden><span id="failure-text">Show the failure</span></button>
        <label class="line plays"><span class="visually-hidden">Speed</span>
          <select id="speed"><option value="0.25">¼×</option><option value="0.5">½×</option>
          <option value="1" selected>1×</option><option value="2">2×</option><option value="4">4×</option>
          <option value="8">8×</option></select></label>
        <button class="icon plays" id="full" aria-label="Full screen" title="Full screen (f)">${ICONS.full}</button>
      </div>
      <p class="keys line small"><span class="plays"><kbd>space</kbd> play, pause</span>
        <span class="plays"><kbd>←</kbd> <kbd>→</kbd> 5 s</span>
        <span><kbd>p</kbd> <kbd>n</kbd> events</span>
        <span><kbd>e</kbd> failures</span><span class="plays"><kbd>[</kbd> <kbd>]</kbd> speed</span>
        <span class="plays"><kbd>f</kbd> full screen</span></p>
    </div>
  </section>
  <div class="side">
    <section class="timeline panel" aria-labelledby="timeline-title">
      <header>
        <div class="line"><h2 id="timeline-title">Events</h2><span class="dim number" id="count" role="status"></span>
          <input type="search" id="search" placeholder="Search the events" aria-label="Search the events"></div>
        <div class="filters line" id="filters" role="group" aria-label="Kinds of events to show"></div></header>
      <ol class="entries" id="entries"></ol>
      <p class="empty" id="no-entries">No events yet.</p>
    </section>
    <section class="facts panel" aria-labelledby="facts-title" tabindex="0">
      <h2 id="facts-title">Session</h2><dl id="facts"></dl>
    </section>
  </div>
</main>`;

export const REPLAY_STYLE = `
body { height: 100%; }
.content { flex: 1; min-height: 0; grid-template-columns: minmax(0, 1fr) 372px; }
.stage { display: flex; flex-direction: column; min-height: 0; min-width: 0; overflow: hidden; }
.screen { color-scheme: dark; position: relative; flex: 1; min-height: 200px; background: var(--bg); color: var(--ink); display: grid; place-items: center; }
.screen video, .screen img { position: absolute; inset: 0; width: 100%; height: 100%; object-fit: contain; cursor: pointer; }
.screen .notice { margin: 0; }
.masked { padding: 8px 14px 0; }
.controls { padding: 10px 14px 12px; border-top: 1px solid var(--line); }
.events-only .plays { display: none; }
.line .play { width: 40px; justify-content: center; }
.line .time { font-family: var(--mono); font-size: 13px; }
.scrub { position: relative; height: 32px; margin-bottom: 6px; }
.scrub input {
  position: absolute; inset: 0; width: 100%; margin: 0; padding: 0; border: 0; background: none; appearance: none; cursor: pointer;
}
.scrub .rail, .scrub .played { position: absolute; left: 0; top: 19px; height: 4px; border-radius: 2px; pointer-events: none; }
.scrub .rail { right: 0; background: var(--line); }
.scrub .played { width: 0; background: var(--accent); }
.scrub input::-webkit-slider-thumb {
  appearance: none; width: 14px; height: 14px; margin-top: 10px; border-radius: 50%; background: var(--accent);
  border: 2px solid var(--panel); box-shadow: 0 0 0 1px var(--accent);
}
.scrub input::-moz-range-thumb { width: 11px; height: 11px; border-radius: 50%; background: var(--accent); border: 2px solid var(--panel); }
.marks { position: absolute; left: 7px; right: 7px; top: 4px; height: 10px; pointer-events: none; }
.marks i { position: absolute; width: 3px; height: 9px; margin-left: -1px; border-radius: 2px; background: var(--mark); }
.flags { position: relative; height: 18px; margin: 0 7px 2px; }
.flags a {
  position: absolute; top: 0; height: 18px; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; font-size: 11px;
  line-height: 16px; color: var(--ink); text-decoration: none; padding: 0 4px; border: solid var(--warn);
  border-width: 0 0 0 5px; background: var(--warn-soft); border-radius: 2px 4px 4px 2px;
}
.flags .turned { border-width: 0 5px 0 0; border-radius: 4px 2px 2px 4px; }
.flags .failed { border-color: var(--bad); background: var(--bad-soft); color: var(--bad); font-weight: 600; }
.side { display: flex; flex-direction: column; gap: inherit; min-height: 0; }
.timeline { flex: 1; min-height: 160px; display: flex; flex-direction: column; overflow: hidden; }
.timeline header { padding: 12px 14px 10px; border-bottom: 1px solid var(--line); display: grid; gap: 8px; }
.timeline header input { flex: 1; min-width: 0; }
.filters { gap: 6px; }
.filters button { min-height: 26px; padding: 0 9px; border-radius: 99px; font-size: 12px; }
.filters button[aria-pressed="false"] { color: var(--dim); background: var(--raised); text-decoration: line-through; }
.filters i, .entries i { width: 8px; height: 8px; border-radius: 50%; background: var(--mark); }
.entries { flex: 1; overflow-y: auto; padding: 6px; position: relative; }
/* As list items, 10,000 rows would be counted again for each one that a search hides: a minute. */
.entries li { display: block; }
.entries .heading:not(:first-child) { border-top: 1px solid var(--line); margin-top: 6px; padding-top: 6px; }
.entries a {
  border-radius: 8px; padding: 5px 8px; min-height: 30px; color: inherit; text-decoration: none;
  display: grid; grid-template-columns: auto 8px minmax(0, 1fr); gap: 8px; align-items: baseline;
}
.entries time { font: 12px var(--mono); color: var(--dim); min-width: var(--time); }
.entries .what { overflow-wrap: anywhere; }
.entries .what > span { margin-right: 3px; font-size: 12px; color: var(--dim); }
.entries .took { white-space: nowrap; }
.entries .what > .status { color: var(--good); }
.entries .what > .status.failed, .entries li.failed .what, .entries li.failed .kind { color: var(--bad); font-weight: 600; }
.entries li.failed a { background: var(--bad-soft); }
.entries a:hover { background: var(--raised); }
.entries [aria-current="true"] { background: var(--soft); box-shadow: inset 3px 0 var(--accent); }
.entries [aria-current="true"] :is(time, .kind, .took) { color: var(--ink); }
.facts { padding: 12px 14px; max-height: 40%; overflow-y: auto; }
.facts dl { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: 4px 14px; margin-top: 8px; align-items: baseline; }
.facts dt { color: var(--dim); }
.facts dd { overflow-wrap: anywhere; }
.keys { margin-top: 8px; }
@media (pointer: coarse) {
  .keys { display: none; }
}
.stage:fullscreen { border: 0; border-radius: 0; }
@media (max-width: 900px) {
  body { height: auto; }
  .content { grid-template-columns: minmax(0, 1fr); }
  .screen { aspect-ratio: 16 / 10; }
  .entries { max-height: 50vh; }
  .facts { max-height: none; }
}
`;
