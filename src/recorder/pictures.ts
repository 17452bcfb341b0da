import { createHash } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { clock } from '../shared/clock.js';
import { CdpSession, type CdpClient } from '../wire/cdp-client.js';
import { BrowserFault } from '../wire/message.js';
import type { CdpSource } from '../wire/cdp-source.js';
import type { FinishMask } from './masks/masks.js';

export interface PicturedBrowser {
  /** Opens clients of it. */
  readonly source: CdpSource;
  readonly pictures: BrowserPictures;
}

/** Receives the pictures of a page: the first one, and each one that differs from the one before. */
interface Watcher {
  /** Fewest milliseconds between two pictures that nobody asked for. */
  readonly interval: number;
  /**
   * @param since When the page had this picture (`clock.now()`): the input or navigation that changed it, if there was one.
   * @param isCovered The mask covers a part of it.
   */
  readonly onPicture: (jpeg: Buffer, since: number, isCovered: boolean) => void;
  /**
   * Called before each picture, if the watcher may not receive all that it shows. The returned function is called after it, and
   * returns what the watcher receives: nothing if it has to wait for the next picture. Without a picture, none was taken.
   */
  readonly mask?: (() => Promise<FinishMask>) | undefined;
}

export interface Watch {
  /**
   * Takes a picture soon, because something happened that people look for.
   *
   * @param at When it happened. Default: now.
   */
  hint(event: 'input' | 'navigation', at?: number): void;
  /** Takes a picture soon, and passes it on also if it does not differ: the mask has changed. */
  repeat(): void;
  /** Takes a picture now. A page that is busy, hidden or shows a dialog may answer late or never. */
  take(): Promise<Buffer>;
  stop(): void;
}

/**
 * Takes pictures of the pages of a browser, over a CDP connection of its own. A picture of a page is taken once, for all
 * who watch the page.
 */
export class BrowserPictures {
  readonly #source: CdpSource;
  /** By the id of the target. */
  readonly #pages = new Map<string, PagePictures>();
  #connection: Promise<CdpClient> | undefined;

  constructor(source: CdpSource) {
    this.#source = source;
  }

  /** Watches a page until it closes. */
  watch(targetId: string, watcher: Watcher): Watch {
    const known = this.#pages.get(targetId);
    const page = known ?? new PagePictures();
    this.#pages.set(targetId, page);
    page.watchers.add(watcher);
    if (known) page.showTo(watcher);
    else void this.#run(targetId, page);
    return {
      hint: (event, at) => page.hint(event, at),
      repeat: () => page.repeatFor(watcher),
      take: () => page.take(),
      stop: () => {
        page.remove(watcher);
        if (page.watchers.size === 0) this.#end(targetId, page);
      },
    };
  }

  async #run(targetId: string, page: PagePictures): Promise<void> {
    try {
      this.#connection ??= this.#open();
      const connection = await this.#connection;
      void connection.ended.then(() => this.#end(targetId, page));
      await page.run(new CdpSession(connection, await connection.attach(targetId)));
    } catch {
      // The page or the browser has ended.
      this.#end(targetId, page);
    }
  }

  #end(targetId: string, page: PagePictures): void {
    page.end();
    if (this.#pages.get(targetId) !== page) return;
    this.#pages.delete(targetId);
    if (this.#pages.size > 0) return;
    this.#connection?.then((connection) => connection.close()).catch(() => {});
    this.#connection = undefined;
  }

  #open(): Promise<CdpClient> {
    return this.#source({
      'Page.screencastFrame': ({ sessionId: frame }, session) => {
        for (const page of this.#pages.values()) page.onFrame(session, frame);
      },
    });
  }
}

/**
 * Without a clip, and without an emulation in this session, Chromium copies what the page shows. With either, the page
 * would have another size for a moment.
 */
const CAPTURE = { format: 'jpeg', quality: 70, optimizeForSpeed: true };

/** Milliseconds that a picture waits for the next frames of its page, which costs nothing. */
const FRAME_WAIT = 20;

/** Pause after a picture, as a multiple of the work for the picture, if one page changes: also on a busy machine, it keeps two thirds. */
const PAUSE = 2;

/** Pictures a second that the changing pages of this process take together, for each core. One is about 17 ms of work. */
const MOST_PER_CORE = 8;

/** The part of the time that pictures for hints may take, if one page changes: a tenth. */
const PART_FOR_HINTS = 0.1;

/** Most milliseconds of work that a page saves for hints. */
const MOST_CREDIT = 200;

/** Number of pictures without a change after which a page is still. */
const STILL = 3;

/** Longest pause, in ms, between pictures that only alternate, as with a caret that blinks. */
const LONGEST_PAUSE = 2_000;

/** Milliseconds in which the frame that a picture causes follows the picture. */
const OWN_FRAME = 300;

/** Pictures that are remembered: a picture that was seen recently is no change. */
const REMEMBERED = 4;

/** Milliseconds for a picture. Doubles with each picture that does not come, as in a page with a dialog. */
const PICTURE_TIMEOUT = 1_000;

const MOST_DOUBLINGS = 5;

/** A screencast that only reports changes: as small as possible. */
const SENTINEL = { format: 'jpeg', quality: 1, maxWidth: 16, maxHeight: 16 };

class NoPicture extends Error {
  /** Milliseconds that count as its work. */
  readonly took: number;

  constructor(message: string, took: number) {
    super(message);
    this.took = took;
  }
}

/**
 * The pictures of one page. While the page changes, each picture is followed by a pause of a multiple of its own duration.
 * A page that is still costs nothing: no picture is taken until Chromium reports a change. Its report is the frame of a
 * screencast, which would be too expensive while a page changes, but has no frames while the page is still.
 */
class PagePictures {
  /** Those that change. They share the cores. */
  static readonly #changing = new Set<PagePictures>();
  /** How much less often a page has pictures, because others change, too: they share the cores with what the pages do. */
  static get #slowdown(): number {
    return 1 + Math.max(0, PagePictures.#changing.size - 1) / availableParallelism();
  }

  readonly watchers = new Set<Watcher>();
  /** Those that have not received the last picture. */
  readonly #behind = new Set<Watcher>();
  /** Number of pictures that a watcher has not received, one after the other. */
  #withheld = 0;
  readonly #requests = new Set<{ resolve: (jpeg: Buffer) => void; reject: (error: Error) => void }>();
  #session: CdpSession | undefined;
  #last: Buffer | undefined;
  /** Digests of the latest pictures. */
  #recent: string[] = [];
  /** Number of pictures without a change. */
  #still = 0;
  /** When the latest event happened that is due for a picture. */
  #hintedAt: number | undefined;
  #credit = MOST_CREDIT;
  #creditAt = clock.now();
  #isWatched = false;
  /** Chromium has reported a change since the last picture. */
  #isChanged = false;
  /** Until when a frame is the one that the last picture caused. */
  #ownFrameUntil = 0;
  #wake = (): void => {};
  /** Gives up the picture that is being taken. */
  #abandon = (_reason: NoPicture): void => {};
  #timeouts = 0;
  #hasEnded = false;

  hint(event: 'input' | 'navigation', at = clock.now()): void {
    this.#hintedAt = at;
    this.#still = 0;
    if (event === 'navigation') {
      // Chromium never answers a capture of the document before.
      this.#abandon(new NoPicture('The page has navigated.', 0));
      this.#stopWatching();
    }
    this.#wake();
  }

  take(): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      if (this.#hasEnded) return reject(new Error('The page is not watched any more.'));
      this.#requests.add({ resolve, reject });
      this.#wake();
    });
  }

  showTo(watcher: Watcher): void {
    if (watcher.mask) this.repeatFor(watcher);
    else if (this.#last) watcher.onPicture(this.#last, clock.now(), false);
  }

  repeatFor(watcher: Watcher): void {
    this.#behind.add(watcher);
    this.hint('input');
  }

  remove(watcher: Watcher): void {
    this.watchers.delete(watcher);
    this.#behind.delete(watcher);
  }

  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    PagePictures.#changing.delete(this);
    this.#refuse(new Error('The page is not watched any more.'));
    this.#session?.detach();
    this.#wake();
  }

  /** Takes pictures until the end. Rejects when the page has closed. */
  async run(session: CdpSession): Promise<void> {
    this.#session = session;
    if (this.#hasEnded) session.detach();
    while (!this.#hasEnded) {
      const began = clock.now();
      const took = await this.#takePicture(session).catch((error: Error) => {
        // Chromium refuses while a navigation changes the process of the page.
        if (!(error instanceof BrowserFault || error instanceof NoPicture)) throw error;
        this.#refuse(error);
        return error instanceof NoPicture ? error.took : 0;
      });
      await this.#pause(session, took, began);
    }
  }

  #refuse(error: Error): void {
    for (const { reject } of this.#requests) reject(error);
    this.#requests.clear();
  }

  /** @param frame The number of a frame, which Chromium expects to be acknowledged. */
  onFrame(sessionId: string | undefined, frame: unknown): void {
    if (sessionId === undefined || sessionId !== this.#session?.id) return;
    this.#session.send('Page.screencastFrameAck', { sessionId: frame });
    const isOwn = clock.now() < this.#ownFrameUntil;
    this.#ownFrameUntil = 0;
    if (isOwn) return;
    this.#isChanged = true;
    this.#wake();
  }

  /** Resolves to the milliseconds that it took, without the wait for the data of the masks, which costs nothing. */
  async #takePicture(session: CdpSession): Promise<number> {
    const requests = [...this.#requests];
    const since = this.#hintedAt ?? clock.now();
    this.#hintedAt = undefined;
    const masks = await this.#beginMasks();
    this.#isChanged = false;
    this.#ownFrameUntil = Infinity;
    const began = clock.now();
    const jpeg = await this.#capture(session).catch((error: Error) => {
      for (const finish of masks.values()) void finish(undefined);
      throw error;
    });
    const ended = clock.now();
    // A frame that follows the picture's own one is a change.
    if (this.#ownFrameUntil > 0) this.#ownFrameUntil = ended + OWN_FRAME;
    this.#compare(jpeg);
    const took = ended - began + (await this.#deliver(jpeg, since, masks));
    this.#spend(workIn(took));
    for (const request of requests) {
      this.#requests.delete(request);
      request.resolve(jpeg);
    }
    return took;
  }

  async #capture(session: CdpSession): Promise<Buffer> {
    const limit = PICTURE_TIMEOUT * 2 ** Math.min(MOST_DOUBLINGS, this.#timeouts);
    const timer = clock.setTimeout(() => {
      this.#timeouts++;
      // On a busy machine, Chromium still works at it: without a pause, it would work at several. A dialog takes no work.
      this.#abandon(new NoPicture('The page has taken too long.', PICTURE_TIMEOUT));
    }, limit);
    const abandoned = new Promise<never>((_resolve, reject) => {
      this.#abandon = reject;
    });
    try {
      const { data } = await Promise.race([session.ask('Page.captureScreenshot', CAPTURE), abandoned]);
      this.#timeouts = 0;
      return Buffer.from(data, 'base64');
    } finally {
      clock.clearTimeout(timer);
    }
  }

  #stopWatching(): void {
    if (this.#isWatched) this.#session?.send('Page.stopScreencast');
    this.#isWatched = false;
  }

  async #beginMasks(): Promise<Map<Watcher, FinishMask>> {
    const masks = new Map<Watcher, FinishMask>();
    const begin = async (watcher: Watcher) => {
      if (watcher.mask) masks.set(watcher, await watcher.mask());
    };
    await Promise.all([...this.watchers].map(begin));
    return masks;
  }

  #compare(jpeg: Buffer): void {
    const digest = createHash('sha1').update(jpeg).digest('base64');
    const isKnown = this.#recent.includes(digest);
    this.#recent = [digest, ...this.#recent.filter((one) => one !== digest)].slice(0, REMEMBERED);
    this.#still = isKnown ? this.#still + 1 : 0;
    if (!isKnown) this.#stopWatching();
    if (this.#last?.equals(jpeg)) return;
    this.#last = jpeg;
    for (const watcher of this.watchers) this.#behind.add(watcher);
  }

  /**
   * @param since When the page had this picture.
   * @returns The milliseconds of work.
   */
  async #deliver(jpeg: Buffer, since: number, masks: ReadonlyMap<Watcher, FinishMask>): Promise<number> {
    const behind = [...this.#behind];
    // First, so that nobody waits for the masks of others.
    for (const watcher of behind.filter(({ mask }) => !mask)) this.#send(watcher, jpeg, since);
    const finish = async ([watcher, mask]: [Watcher, FinishMask]) => {
      const masked = await mask(behind.includes(watcher) ? jpeg : undefined);
      if (masked) this.#send(watcher, masked.jpeg, since, masked.isCovered);
      return masked?.took ?? 0;
    };
    const times = await Promise.all([...masks].map(finish));
    this.#withheld = this.#behind.size > 0 ? this.#withheld + 1 : 0;
    return times.reduce((sum, time) => sum + time, 0);
  }

  #send(watcher: Watcher, jpeg: Buffer, since: number, isCovered = false): void {
    // It may have stopped meanwhile.
    if (this.#behind.delete(watcher)) watcher.onPicture(jpeg, since, isCovered);
  }

  /**
   * @param took Milliseconds of the last picture.
   * @param began When it began.
   */
  async #pause(session: CdpSession, took: number, began: number): Promise<void> {
    const ended = clock.now();
    const elapsed = ended - began;
    if (this.#still >= STILL && this.#behind.size === 0) {
      PagePictures.#changing.delete(this);
      await this.#waitForChange(session);
    }
    if (!this.#hasEnded) PagePictures.#changing.add(this);
    const due = () => {
      if (this.#hasEnded || this.#requests.size > 0) return 0;
      const share = (1000 * PagePictures.#changing.size) / (MOST_PER_CORE * availableParallelism()) - elapsed;
      if (this.#hintedAt !== undefined && this.#spend(0) > 0) return ended + share - clock.now();
      const interval = Math.min(...[...this.watchers].map((watcher) => watcher.interval));
      const pause = Math.max(PAUSE * PagePictures.#slowdown * workIn(took), interval - elapsed, share);
      const factor = 2 ** Math.max(0, this.#still - STILL, this.#withheld - STILL);
      return ended + Math.max(pause, Math.min(LONGEST_PAUSE, pause * factor)) - clock.now();
    };
    for (let rest = due(); rest > 0; rest = due()) await this.#sleep(rest);
  }

  async #waitForChange(session: CdpSession): Promise<void> {
    if (!this.#isWatched) {
      this.#isWatched = true;
      // The page may have changed since the last picture: the first frame counts as a change, and a picture follows.
      this.#ownFrameUntil = 0;
      await session.ask('Page.startScreencast', SENTINEL).catch(() => (this.#isWatched = false));
    }
    const isDue = () =>
      this.#isChanged || this.#hintedAt !== undefined || this.#requests.size > 0 || this.#hasEnded;
    while (this.#isWatched && !isDue()) await this.#sleep();
  }

  /**
   * Spends credit for hints, which grows with the time.
   *
   * @returns What is left, in ms.
   */
  #spend(milliseconds: number): number {
    const now = clock.now();
    const earned = ((now - this.#creditAt) * PART_FOR_HINTS) / PagePictures.#slowdown;
    this.#creditAt = now;
    this.#credit = Math.max(-MOST_CREDIT, Math.min(MOST_CREDIT, this.#credit + earned) - milliseconds);
    return this.#credit;
  }

  /** Waits until something happens, or for this time. */
  #sleep(milliseconds?: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = milliseconds === undefined ? undefined : clock.setTimeout(resolve, milliseconds);
      this.#wake = () => {
        clock.clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** The part of a picture's time that is work. */
function workIn(took: number): number {
  return Math.max(took / 4, took - FRAME_WAIT);
}
