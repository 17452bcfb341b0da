import { clock } from '../../shared/clock.js';
import { isRecord, jsonOf } from '../../shared/json.js';
import { BrowserFault } from '../../wire/message.js';
import type { CdpSession } from '../../wire/cdp-client.js';
import { maskJpeg, sizeOfJpeg, type Area } from './jpeg-mask.js';
import type { RecorderWorld } from './mask-script.js';

/** Milliseconds in which a document must answer. */
const ANSWER_TIMEOUT = 1_000;

/** Documents of a page that are measured, each with those of its own site in it. Above that, the oldest are dropped. */
const MOST_DOCUMENTS = 100;

/** The longest answer of a document, in characters. */
const LONGEST_ANSWER = 1_000_000;

/** Pixels around an element, for its shadow and for rounding. */
const PADDING = 4;

/** Masks a picture that Chromium has taken. Returns nothing if it is unknown what to hide, or without a picture. */
export type FinishMask = (jpeg: Buffer | undefined) => Promise<MaskedPicture | undefined>;

interface MaskedPicture extends Masked {
  /** Milliseconds of work for the masks. */
  readonly took: number;
}

interface Masked {
  readonly jpeg: Buffer;
  /** A part of the picture is covered. */
  readonly isCovered: boolean;
}

/** A document with the recorder's script, and those of its site in it. */
interface ScriptedDocument {
  readonly session: CdpSession;
  /** The execution context of the script. */
  readonly contextId: number;
}

/**
 * Hides password fields, and elements that match a selector, in the pictures of a page. All its documents are measured from before a picture
 * until after it. If the page's own document does not answer, the picture is dropped; a frame whose document does
 * not answer is covered.
 */
export class PageMasks {
  readonly #page: CdpSession;
  readonly #mainFrame: string;
  readonly #world: RecorderWorld;
  readonly #documents = new Map<string, ScriptedDocument>();

  /** @param targetId The target of the page, whose main frame has the same id. */
  constructor(page: CdpSession, targetId: string, world: RecorderWorld) {
    this.#page = page;
    this.#mainFrame = targetId;
    this.#world = world;
  }

  /** Adds a document that has reported itself. */
  add(session: CdpSession, contextId: number): void {
    this.#documents.set(`${session.id} ${contextId}`, { session, contextId });
    const [oldest] = this.#documents.keys();
    if (this.#documents.size > MOST_DOCUMENTS) this.#documents.delete(oldest!);
  }

  /** Forgets the documents of a session that has ended. */
  remove(sessionId: string): void {
    for (const [key, { session }] of this.#documents)
      if (session.id === sessionId) this.#documents.delete(key);
  }

  /** Begins to measure. A picture that is taken from now on can be masked. */
  async begin(): Promise<FinishMask> {
    let begun = await this.#beginAll();
    if (begun.size === 0 && (await this.#runScript())) begun = await this.#beginAll();
    return async (jpeg) => {
      const answers = await Promise.all([...begun].map((one) => this.#ask(one, 'recorderMasks.end()')));
      if (!jpeg) return undefined;
      const began = clock.now();
      const masked = mask(
        jpeg,
        answers.map(readAnswer).filter((answer) => answer !== undefined),
      );
      return masked && { ...masked, took: clock.now() - began };
    };
  }

  async #beginAll(): Promise<Set<ScriptedDocument>> {
    const begun = new Set<ScriptedDocument>();
    const begin = async (one: ScriptedDocument) => {
      if ((await this.#ask(one, 'recorderMasks.begin()')) === true) begun.add(one);
    };
    await Promise.all([...this.#documents.values()].map(begin));
    return begun;
  }

  /** Runs the script in the page's own document, where it does not run by itself if the page's JavaScript is disabled. */
  async #runScript(): Promise<boolean> {
    try {
      const world = { frameId: this.#mainFrame, worldName: this.#world.name };
      const create = () => this.#page.ask('Page.createIsolatedWorld', world);
      const { executionContextId: contextId } = await inTime(create);
      await inTime(() => this.#page.ask('Runtime.evaluate', { expression: this.#world.script, contextId }));
      this.add(this.#page, contextId);
      return true;
    } catch {
      return false;
    }
  }

  /** Resolves to undefined if the document does not answer in time, or has been replaced. */
  async #ask({ session, contextId }: ScriptedDocument, expression: string): Promise<unknown> {
    const params = { expression, contextId, awaitPromise: true, returnByValue: true };
    try {
      const { result, exceptionDetails } = await inTime(() => session.ask('Runtime.evaluate', params));
      return exceptionDetails ? undefined : result.value;
    } catch (error) {
      if (error instanceof BrowserFault) this.#documents.delete(`${session.id} ${contextId}`);
      return undefined;
    }
  }
}

async function inTime<Result>(ask: () => Promise<Result>): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = clock.setTimeout(() => reject(new Error('The document does not answer.')), ANSWER_TIMEOUT);
  });
  try {
    return await Promise.race([ask(), late]);
  } finally {
    clock.clearTimeout(timer);
  }
}

/** Left, top, right and bottom. */
type Edges = readonly [number, number, number, number];

interface MeasuredFrame {
  readonly edges: Edges;
  /**
   * The frame's document: its number in the same answer, or the path of a document with an answer of its own. Null for one in a
   * shadow root, which has no path; undefined if it is unknown.
   */
  readonly to: number | string | null | undefined;
  /** Where places in the frame are in the document around it: left, top, and the factors. */
  readonly place: Edges | undefined;
}

interface MeasuredDocument {
  /** It has more elements or frames than are measured. */
  readonly isTooMany: boolean;
  readonly elements: readonly Edges[];
  /** Number of frames without a path. */
  readonly placeless: number;
  readonly frames: readonly MeasuredFrame[];
}

/** What the script answers. */
interface Answer {
  /** The number of the frame in its parent, from the page on. Null in a shadow root. */
  readonly path: string | null;
  /** `innerWidth`, `innerHeight`, and width, height, left, top and scale of the visual viewport. */
  readonly view: readonly number[];
  readonly documents: readonly [MeasuredDocument, ...MeasuredDocument[]];
}

/** Reads an answer of the script. A client can open its world, and answer anything. */
function readAnswer(value: unknown): Answer | undefined {
  if (typeof value !== 'string' || value.length > LONGEST_ANSWER) return undefined;
  const answer = jsonOf(value);
  if (!isRecord(answer)) return undefined;
  const { path, view, documents } = answer;
  const [first, ...others] = listOf(documents, readDocument) ?? [];
  if (!first || !isNumbers(view, 7)) return undefined;
  return { path: typeof path === 'string' ? path : null, view, documents: [first, ...others] };
}

function readDocument(value: unknown): MeasuredDocument | undefined {
  if (!isRecord(value)) return undefined;
  const elements = listOf(value['elements'], readEdges);
  const frames = listOf(value['frames'], readFrame);
  const placeless = Number(value['placeless']);
  return elements && frames && { isTooMany: value['isTooMany'] !== false, elements, placeless, frames };
}

function readFrame(value: unknown): MeasuredFrame | undefined {
  const edges = isRecord(value) ? readEdges(value['edges']) : undefined;
  if (!edges || !isRecord(value)) return undefined;
  const { to } = value;
  const place = readEdges(value['place']);
  return {
    edges,
    to: typeof to === 'number' || typeof to === 'string' || to === null ? to : undefined,
    place,
  };
}

function readEdges(value: unknown): Edges | undefined {
  return isNumbers(value, 4) ? (value as unknown as Edges) : undefined;
}

function isNumbers(value: unknown, count: number): value is number[] {
  return Array.isArray(value) && value.length === count && value.every(Number.isFinite);
}

/** Returns undefined if one of the items can not be read. */
function listOf<Item>(value: unknown, read: (item: unknown) => Item | undefined): Item[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const items = value.map(read);
  return items.every((item) => item !== undefined) ? items : undefined;
}

/** Returns undefined if the picture can not be masked. */
function mask(jpeg: Buffer, answers: readonly Answer[]): Masked | undefined {
  const page = answers.find(({ path }) => path === '');
  if (!page) return undefined;
  try {
    const areas = new Placement(answers).areasOf(page);
    if (areas.length === 0) return { jpeg, isCovered: false };
    const { width, height } = sizeOfJpeg(jpeg);
    const toPicture = placeInPicture(page.view, { width, height });
    if (!toPicture) return undefined;
    // A page is often longer than its picture.
    const isOutside = ({ left, top, right, bottom }: Area) =>
      left >= width || top >= height || right <= 0 || bottom <= 0;
    const seen = areas.map(toPicture).filter((area) => !isOutside(area));
    return seen.length === 0 ? { jpeg, isCovered: false } : { jpeg: maskJpeg(jpeg, seen), isCovered: true };
  } catch {
    return undefined;
  }
}

/** The longest scroll bar, in CSS pixels. */
const WIDEST_SCROLLBAR = 40;

/** How much the factors across and down may differ, because sizes are whole pixels. */
const MOST_DIFFERENT = 0.03;

/**
 * Returns a function that translates places in the page into places in its picture, with the padding. An emulation can make
 * the picture larger or smaller than the page, with any device scale factor: only the sizes are certain. Returns undefined
 * if the picture shows something else than the whole viewport.
 */
function placeInPicture(view: readonly number[], size: { width: number; height: number }) {
  const [innerWidth = 0, innerHeight = 0, width = 0, height = 0, left = 0, top = 0, scale = 1] = view;
  // The visual viewport has no scroll bars, which the picture shows.
  const shown = (inner: number, visual: number) => {
    const scrollbar = inner - visual * scale;
    return visual + (scrollbar > 0 && scrollbar <= WIDEST_SCROLLBAR ? scrollbar / scale : 0);
  };
  const across = size.width / shown(innerWidth, width);
  const down = size.height / shown(innerHeight, height);
  if (!(across > 0 && down > 0) || Math.abs(across / down - 1) > MOST_DIFFERENT) return undefined;
  return (area: Area): Area => ({
    left: (area.left - left) * across - PADDING,
    top: (area.top - top) * down - PADDING,
    right: (area.right - left) * across + PADDING,
    bottom: (area.bottom - top) * down + PADDING,
  });
}

const EVERYTHING: Area = { left: -Infinity, top: -Infinity, right: Infinity, bottom: Infinity };

/** As many documents as a page can have with its frames. A client can answer that a frame contains itself. */
const MOST_VISITS = 1_000;

/** Puts the measurements of all documents of a page together. */
class Placement {
  readonly #answers: readonly Answer[];
  #visits = 0;

  constructor(answers: readonly Answer[]) {
    this.#answers = answers;
  }

  /** Returns what to hide, in CSS pixels of the page's layout viewport. */
  areasOf(page: Answer): readonly Area[] {
    return this.#areasIn(page, page.documents[0], [0, 0, 1, 1], EVERYTHING);
  }

  /** @param place Where places in the document are in the page. */
  #areasIn(answer: Answer, measured: MeasuredDocument, place: Edges, clip: Area): Area[] {
    if (++this.#visits > MOST_VISITS) throw new Error('The page has too many frames.');
    if (measured.isTooMany) return [clip];
    const [x, y, across, down] = place;
    const toPage = ([left, top, right, bottom]: Edges): Area => ({
      left: Math.max(clip.left, x + left * across),
      top: Math.max(clip.top, y + top * down),
      right: Math.min(clip.right, x + right * across),
      bottom: Math.min(clip.bottom, y + bottom * down),
    });
    const areas = measured.elements.map(toPage);
    for (const frame of measured.frames)
      areas.push(...this.#areasInFrame(answer, frame, place, toPage(frame.edges)));
    return areas.filter((area) => area.left < area.right && area.top < area.bottom);
  }

  #areasInFrame(
    answer: Answer,
    { to, place }: MeasuredFrame,
    [x, y, across, down]: Edges,
    area: Area,
  ): Area[] {
    if (to === null && this.#placelessHideNothing()) return [];
    const other = typeof to === 'number' ? answer : this.#answers.find(({ path }) => path === to);
    const measured = typeof to === 'number' ? answer.documents[to] : other?.documents[0];
    if (to === null || !other || !measured) return [area];
    if (!place) return this.#areasIn(other, measured, [0, 0, 1, 1], EVERYTHING).length > 0 ? [area] : [];
    const [left, top, wide, high] = place;
    return this.#areasIn(
      other,
      measured,
      [x + left * across, y + top * down, wide * across, high * down],
      area,
    );
  }

  /** Whether all documents whose frames are in shadow roots have answered that they have nothing to hide. */
  #placelessHideNothing(): boolean {
    const answered = this.#answers.filter(({ path }) => path === null);
    const all = this.#answers.flatMap(({ documents }) => documents);
    const isEmpty = ({ isTooMany, elements, frames }: MeasuredDocument) =>
      !isTooMany && elements.length === 0 && frames.every(({ to }) => to !== undefined);
    const count = all.reduce((sum, { placeless }) => sum + placeless, 0);
    return answered.length >= count && answered.every(({ documents }) => documents.every(isEmpty));
  }
}
