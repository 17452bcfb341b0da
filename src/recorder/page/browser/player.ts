import { byId } from '../../../shared/page/browser/dom.js';
import { clock, fragmentOf } from '../../../shared/page/browser/format.js';
import { nearest } from './moments.js';
import type { Screen } from './screen.js';
import type { Timeline } from './timeline.js';

/** Milliseconds that an arrow key moves. */
const STEP = 5_000;

/** What keys do. */
type Actions = Readonly<Record<string, (() => void) | undefined>>;

/**
 * The controls of a video, or of pictures: buttons, scrub bar, keys. Where there is nothing to play, those that go from one event to
 * another.
 */
export class Player {
  readonly #position = byId('position', HTMLInputElement);
  readonly #speed = byId('speed', HTMLSelectElement);
  readonly #timeline: Timeline;
  /** Milliseconds. */
  #length = 0;
  #screen: Screen | undefined;
  /** The moment that was chosen last. */
  #chosen = 0;
  #wasPaused = true;

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
    this.#listen();
  }

  /**
   * Loads a video or pictures, unless they are loaded: they may be playing.
   *
   * @param open Returns the screen. Its argument is called when the screen begins to play, pauses, or shows another position.
   * @param length In milliseconds.
   * @returns Whether they were loaded by this call.
   */
  load(open: (onChange: () => void) => Screen, length: number): boolean {
    if (this.#screen) return false;
    this.#length = length;
    this.#screen = open(() => this.#onChange());
    this.#screen.element.hidden = false;
    this.#screen.element.addEventListener('click', () => this.#toggle());
    this.#position.max = String(length);
    byId('controls').classList.remove('events-only');
    this.#show();
    return true;
  }

  /** Goes to a time in milliseconds. Without a video, only the list of events shows it. */
  seek(at: number): void {
    const time = Math.max(0, this.#screen ? Math.min(at, this.#length) : at);
    this.#chosen = time;
    if (this.#screen) this.#screen.at = time;
    this.#timeline.highlight(time, true);
    this.#show();
  }

  /** Goes to the moment that the address names, as `#t=13.1` in seconds. */
  seekToFragment(): void {
    const seconds = /^#t=(\d+(?:\.\d+)?)$/.exec(location.hash)?.[1];
    if (seconds !== undefined) this.seek(Number(seconds) * 1000);
  }

  /** Shows the buttons that go to the events, once these are known. */
  showEvents(): void {
    byId('controls').hidden = !this.#screen && this.#timeline.isEmpty;
    const count = this.#timeline.failures.length;
    byId('failure').hidden = count === 0;
    byId('failure-text').textContent = count > 1 ? `Next of ${count} failures` : 'Show the failure';
    byId('previous-failure').hidden = count < 2;
  }

  get #at(): number {
    return this.#screen?.at ?? this.#chosen;
  }

  #listen(): void {
    const onClick = (id: string, action: () => void) => byId(id).addEventListener('click', action);
    onClick('play', () => this.#toggle());
    onClick('pause', () => this.#toggle());
    onClick('previous', () => this.#goToEvent(-1));
    onClick('next', () => this.#goToEvent(1));
    onClick('failure', () => this.#goToFailure(1));
    onClick('previous-failure', () => this.#goToFailure(-1));
    onClick('full', () => this.#toggleFullScreen());
    this.#position.addEventListener('input', () => this.seek(Number(this.#position.value)));
    this.#position.addEventListener('change', () => showFragment(this.#at));
    this.#speed.addEventListener('change', () => this.#setSpeed());
    addEventListener('hashchange', () => this.seekToFragment());
    document.addEventListener('keydown', (event) => this.#onKey(event));
  }

  #onChange(): void {
    const { isPaused } = this.#screen!;
    if (isPaused === this.#wasPaused) return this.#show();
    this.#wasPaused = isPaused;
    // A person can copy the address of the moment that is shown.
    if (isPaused) showFragment(this.#at);
    this.#showWhilePlaying();
  }

  #toggle(): void {
    if (!this.#screen?.isPaused) return this.#screen?.pause();
    this.#screen.play();
    this.#setSpeed();
  }

  #setSpeed(): void {
    if (this.#screen) this.#screen.speed = Number(this.#speed.value);
  }

  /** Updates the scrub bar with each frame: `timeupdate` of a video comes only four times a second. */
  #showWhilePlaying(): void {
    this.#show();
    if (!this.#screen!.isPaused) requestAnimationFrame(() => this.#showWhilePlaying());
  }

  #show(): void {
    if (!this.#screen) return;
    const { isPaused, at } = this.#screen;
    const focused = document.activeElement;
    byId('play').hidden = !isPaused;
    byId('pause').hidden = isPaused;
    // Moves the focus from the hidden button to its replacement.
    if (focused === byId(isPaused ? 'pause' : 'play')) byId(isPaused ? 'play' : 'pause').focus();
    const [shown, length] = [clock(at), clock(this.#length)];
    byId('time').textContent = `${shown} / ${length}`;
    this.#position.value = String(at);
    this.#position.setAttribute('aria-valuetext', `${shown} of ${length}`);
    byId('played').style.width = `${this.#length === 0 ? 0 : (100 * at) / this.#length}%`;
    this.#timeline.highlight(at);
  }

  #goToEvent(direction: 1 | -1): void {
    const at = this.#timeline.nearest(this.#at, direction);
    if (at !== undefined) this.seek(at);
  }

  /** Goes to the next failure, and from the last one to the first. */
  #goToFailure(direction: 1 | -1): void {
    const { failures } = this.#timeline;
    const at = nearest(failures, this.#at, direction) ?? failures.at(direction === 1 ? 0 : -1)?.at;
    if (at === undefined) return;
    this.seek(at);
    showFragment(at);
  }

  #toggleFullScreen(): void {
    // Rejects if the person's browser does not allow full screen.
    const done = document.fullscreenElement ? document.exitFullscreen() : byId('stage').requestFullscreen();
    done.catch(() => {});
  }

  #onKey(event: KeyboardEvent): void {
    const { key, target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || target instanceof HTMLSelectElement) return;
    if (target instanceof HTMLInputElement && target !== this.#position) return;
    // The space bar presses a focused button.
    if (key === ' ' && target instanceof HTMLElement && target.closest('button')) return;
    const action = this.#screen ? this.#actions[key] : this.#eventActions[key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  readonly #eventActions: Actions = {
    n: () => this.#goToEvent(1),
    p: () => this.#goToEvent(-1),
    e: () => this.#goToFailure(1),
  };

  readonly #actions: Actions = {
    ...this.#eventActions,
    ' ': () => this.#toggle(),
    k: () => this.#toggle(),
    f: () => this.#toggleFullScreen(),
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
