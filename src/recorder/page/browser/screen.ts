import { byId } from '../../../shared/page/browser/dom.js';
import type { ReplayPictures } from '../replay-page.js';
import { lastUntil } from './moments.js';

/** What the controls of the player play. */
export interface Screen {
  readonly element: HTMLElement;
  /** The position in milliseconds. Set to seek. */
  at: number;
  /** 1 is the speed of the recording. */
  speed: number;
  readonly isPaused: boolean;
  play(): void;
  pause(): void;
}

export class VideoScreen implements Screen {
  readonly element = byId('video', HTMLVideoElement);

  /** @param onChange Called when the video begins to play, pauses, ends, or shows another position. */
  constructor(source: string, onChange: () => void) {
    this.element.src = source;
    for (const event of ['play', 'pause', 'ended', 'seeked']) this.element.addEventListener(event, onChange);
  }

  get at(): number {
    return this.element.currentTime * 1000;
  }

  set at(at: number) {
    this.element.currentTime = at / 1000;
  }

  get speed(): number {
    return this.element.playbackRate;
  }

  set speed(speed: number) {
    this.element.playbackRate = speed;
  }

  get isPaused(): boolean {
    return this.element.paused;
  }

  play(): void {
    // Rejects if the video is still loading.
    this.element.play().catch(() => {});
  }

  pause(): void {
    this.element.pause();
  }
}

/** Pictures to load before they are shown. */
const AHEAD = 3;

/** Shows the pictures of a recording without a video, each at its time. */
export class PictureScreen implements Screen {
  readonly element = byId('picture', HTMLImageElement);
  readonly #pictures: ReplayPictures;
  readonly #onChange: () => void;
  #at = 0;
  #speed = 1;
  /** When the pictures began to play from the position `#at`. Undefined: they are paused. */
  #playingSince: number | undefined;
  #shown: string | undefined;
  /** Loaded pictures stay in the browser's memory only while something refers to them. */
  readonly #ahead: HTMLImageElement[] = [];

  constructor(pictures: ReplayPictures, onChange: () => void) {
    this.#pictures = pictures;
    this.#onChange = onChange;
    this.#draw();
  }

  get at(): number {
    if (this.#playingSince === undefined) return this.#at;
    const played = (performance.now() - this.#playingSince) * this.#speed;
    return Math.min(this.#pictures.length, this.#at + played);
  }

  set at(at: number) {
    this.#moveTo(at);
    this.#draw();
    this.#onChange();
  }

  get speed(): number {
    return this.#speed;
  }

  set speed(speed: number) {
    this.#moveTo(this.at);
    this.#speed = speed;
  }

  get isPaused(): boolean {
    return this.#playingSince === undefined;
  }

  play(): void {
    if (!this.isPaused) return;
    if (this.#at >= this.#pictures.length) this.#at = 0;
    this.#playingSince = performance.now();
    this.#playOn();
    this.#onChange();
  }

  pause(): void {
    this.#at = this.at;
    this.#playingSince = undefined;
    this.#onChange();
  }

  #moveTo(at: number): void {
    this.#at = at;
    if (!this.isPaused) this.#playingSince = performance.now();
  }

  #playOn(): void {
    if (this.isPaused) return;
    this.#draw();
    if (this.at >= this.#pictures.length) this.pause();
    else requestAnimationFrame(() => this.#playOn());
  }

  #draw(): void {
    const { frames } = this.#pictures;
    const index = Math.max(0, lastUntil(frames, this.at));
    const source = frames[index]?.source;
    if (source === undefined || source === this.#shown) return;
    this.#shown = source;
    this.element.src = source;
    const next = frames.slice(index + 1, index + 1 + AHEAD).map(({ source }) => loaded(source));
    this.#ahead.splice(0, Infinity, ...next);
  }
}

function loaded(source: string): HTMLImageElement {
  const image = new Image();
  image.src = source;
  return image;
}
