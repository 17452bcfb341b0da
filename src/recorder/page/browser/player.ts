import { byId } from '../../../shared/page/browser/dom.js';
import { clock, fragmentOf } from '../../../shared/page/browser/format.js';
import type { Timeline } from './timeline.js';

/** Milliseconds that an arrow key moves. */
const STEP = 5_000;

/** The video and its controls: buttons, scrub bar, keys. */
export class Player {
  readonly #video = byId('video', HTMLVideoElement);
  readonly #position = byId('position', HTMLInputElement);
  readonly #speed = byId('speed', HTMLSelectElement);
  readonly #timeline: Timeline;
  #length = 0;
  #source = '';

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
    this.#listen();
  }

  /**
   * Loads a video, unless it is loaded: it may be playing.
   *
   * @param poster URL of the picture that is shown until the video plays.
   * @param length In milliseconds.
   */
  load(source: string, poster: string, length: number): void {
    if (this.#source === source) return;
    this.#source = source;
    this.#length = length;
    this.#video.src = source;
    this.#video.poster = poster;
    this.#video.hidden = false;
    this.#position.max = String(length);
    byId('controls').hidden = false;
    this.#show();
    this.#seekToFragment();
  }

  seek(at: number): void {
    if (this.#source === '') return;
    this.#video.currentTime = Math.min(Math.max(0, at), this.#length) / 1000;
    this.#show();
  }

  /** Seeks to the moment that the address names, as `#t=13.1` in seconds. */
  #seekToFragment(): void {
    const seconds = /^#t=(\d+(?:\.\d+)?)$/.exec(location.hash)?.[1];
    if (seconds !== undefined) this.seek(Number(seconds) * 1000);
  }

  get #at(): number {
    return this.#video.currentTime * 1000;
  }

  #listen(): void {
    const video = this.#video;
    byId('play').addEventListener('click', () => this.#toggle());
    byId('pause').addEventListener('click', () => this.#toggle());
    video.addEventListener('click', () => this.#toggle());
    byId('previous').addEventListener('click', () => this.#goToEvent(-1));
    byId('next').addEventListener('click', () => this.#goToEvent(1));
    byId('full').addEventListener('click', () => this.#toggleFullScreen());
    this.#position.addEventListener('input', () => this.seek(Number(this.#position.value)));
    this.#speed.addEventListener('change', () => this.#setSpeed());
    // A person can copy the address of the moment that is shown.
    video.addEventListener('pause', () => showFragment(this.#at));
    this.#position.addEventListener('change', () => showFragment(this.#at));
    addEventListener('hashchange', () => this.#seekToFragment());
    for (const event of ['play', 'pause', 'ended', 'seeked'])
      video.addEventListener(event, () => this.#show());
    video.addEventListener('play', () => this.#followVideo());
    document.addEventListener('keydown', (event) => this.#onKey(event));
  }

  #toggle(): void {
    if (!this.#video.paused) return this.#video.pause();
    // Rejects if the video is still loading.
    this.#video.play().catch(() => {});
    this.#setSpeed();
  }

  #setSpeed(): void {
    this.#video.playbackRate = Number(this.#speed.value);
  }

  /** Updates the scrub bar with each frame: `timeupdate` comes only four times a second. */
  #followVideo(): void {
    this.#show();
    if (!this.#video.paused && !this.#video.ended) requestAnimationFrame(() => this.#followVideo());
  }

  #show(): void {
    const { paused } = this.#video;
    const focused = document.activeElement;
    byId('play').hidden = !paused;
    byId('pause').hidden = paused;
    // Moves the focus from the hidden button to its replacement.
    if (focused === byId(paused ? 'pause' : 'play')) byId(paused ? 'play' : 'pause').focus();
    const [at, length] = [clock(this.#at), clock(this.#length)];
    byId('time').textContent = `${at} / ${length}`;
    this.#position.value = String(this.#at);
    this.#position.setAttribute('aria-valuetext', `${at} of ${length}`);
    byId('played').style.width = `${this.#length === 0 ? 0 : (100 * this.#at) / this.#length}%`;
    this.#timeline.highlight(this.#at);
  }

  #goToEvent(direction: 1 | -1): void {
    const at = this.#timeline.nearest(this.#at, direction);
    if (at !== undefined) this.seek(at);
  }

  #toggleFullScreen(): void {
    // Rejects if the person's browser does not allow full screen.
    const done = document.fullscreenElement ? document.exitFullscreen() : byId('stage').requestFullscreen();
    done.catch(() => {});
  }

  #onKey(event: KeyboardEvent): void {
    const { key, target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || target instanceof HTMLSelectElement) return;
    // The space bar presses a focused button.
    if (key === ' ' && target instanceof HTMLElement && target.closest('button')) return;
    const action = this.#actions[key];
    if (!action || this.#source === '') return;
    event.preventDefault();
    action();
  }

  readonly #actions: Readonly<Record<string, (() => void) | undefined>> = {
    ' ': () => this.#toggle(),
    k: () => this.#toggle(),
    f: () => this.#toggleFullScreen(),
    n: () => this.#goToEvent(1),
    p: () => this.#goToEvent(-1),
    '[': () => this.#changeSpeed(-1),
    ']': () => this.#changeSpeed(1),
    ArrowLeft: () => this.seek(this.#at - STEP),
    ArrowRight: () => this.seek(this.#at + STEP),
    Home: () => this.seek(0),
    End: () => this.seek(this.#length),
  };

  #changeSpeed(by: number): void {
    const { selectedIndex, options } = this.#speed;
    this.#speed.selectedIndex = Math.min(Math.max(0, selectedIndex + by), options.length - 1);
    this.#setSpeed();
  }
}

/** Shows a moment in the address, without an entry in the history. */
function showFragment(at: number): void {
  history.replaceState(null, '', fragmentOf(at));
}
