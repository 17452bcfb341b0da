import { byId } from './dom.js';
import { clock } from './format.js';

/** Where the player finds the events to go to. */
export interface Events {
  /** The time of the next event, or of the previous one, as seen from a time; all in milliseconds. */
  nearest(from: number, direction: 1 | -1): number | undefined;
}

const STEP = 5_000;

/** The film and what moves it: buttons, the scrub bar, keys. */
export class Player {
  readonly #film = byId('film', HTMLVideoElement);
  readonly #position = byId('position', HTMLInputElement);
  readonly #speed = byId('speed', HTMLSelectElement);
  readonly #onTime: (at: number) => void;
  readonly #events: Events;
  #length = 0;
  #source = '';

  constructor(onTime: (at: number) => void, events: Events) {
    this.#onTime = onTime;
    this.#events = events;
    this.#listen();
  }

  /** Shows a film of so many milliseconds. The same one again is left alone: it may be playing. */
  load(source: string, length: number): void {
    if (this.#source === source) return;
    this.#source = source;
    this.#length = length;
    this.#film.src = source;
    this.#film.hidden = false;
    this.#position.max = String(length);
    byId('controls').hidden = false;
    this.#show();
  }

  jump(at: number): void {
    if (this.#source === '') return;
    this.#film.currentTime = Math.min(Math.max(0, at), this.#length) / 1000;
    this.#show();
  }

  get #at(): number {
    return this.#film.currentTime * 1000;
  }

  #listen(): void {
    const film = this.#film;
    byId('play').addEventListener('click', () => this.#toggle());
    byId('pause').addEventListener('click', () => this.#toggle());
    film.addEventListener('click', () => this.#toggle());
    byId('previous').addEventListener('click', () => this.#goToEvent(-1));
    byId('next').addEventListener('click', () => this.#goToEvent(1));
    byId('full').addEventListener('click', () => this.#toggleFullScreen());
    this.#position.addEventListener('input', () => this.jump(Number(this.#position.value)));
    this.#speed.addEventListener('change', () => this.#setSpeed());
    for (const event of ['play', 'pause', 'ended', 'seeked'])
      film.addEventListener(event, () => this.#show());
    film.addEventListener('play', () => this.#followFilm());
    document.addEventListener('keydown', (event) => this.#onKey(event));
  }

  #toggle(): void {
    if (!this.#film.paused) return this.#film.pause();
    // A click that comes while it is loading is answered by the browser with an abort.
    this.#film.play().catch(() => {});
    this.#setSpeed();
  }

  #setSpeed(): void {
    this.#film.playbackRate = Number(this.#speed.value);
  }

  /** `timeupdate` comes four times a second: too coarse for a bar that moves. */
  #followFilm(): void {
    this.#show();
    if (!this.#film.paused && !this.#film.ended) requestAnimationFrame(() => this.#followFilm());
  }

  #show(): void {
    const { paused } = this.#film;
    const focused = document.activeElement;
    byId('play').hidden = !paused;
    byId('pause').hidden = paused;
    // The button that was pressed is gone: the other one takes the focus over.
    if (focused === byId(paused ? 'pause' : 'play')) byId(paused ? 'play' : 'pause').focus();
    const [at, length] = [clock(this.#at), clock(this.#length)];
    byId('time').textContent = `${at} / ${length}`;
    this.#position.value = String(this.#at);
    this.#position.setAttribute('aria-valuetext', `${at} of ${length}`);
    byId('played').style.width = `${this.#length === 0 ? 0 : (100 * this.#at) / this.#length}%`;
    this.#onTime(this.#at);
  }

  #goToEvent(direction: 1 | -1): void {
    const at = this.#events.nearest(this.#at, direction);
    if (at !== undefined) this.jump(at);
  }

  #toggleFullScreen(): void {
    // Refused where the person's browser does not allow it: then the page stays as it is.
    const done = document.fullscreenElement ? document.exitFullscreen() : byId('stage').requestFullscreen();
    done.catch(() => {});
  }

  #onKey(event: KeyboardEvent): void {
    const { key, target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || target instanceof HTMLSelectElement) return;
    // A focused button has its own meaning for the space bar.
    if (key === ' ' && target instanceof HTMLElement && target.closest('button, a')) return;
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
    ArrowLeft: () => this.jump(this.#at - STEP),
    ArrowRight: () => this.jump(this.#at + STEP),
    Home: () => this.jump(0),
    End: () => this.jump(this.#length),
  };

  #changeSpeed(by: number): void {
    const { selectedIndex, options } = this.#speed;
    this.#speed.selectedIndex = Math.min(Math.max(0, selectedIndex + by), options.length - 1);
    this.#setSpeed();
  }
}
