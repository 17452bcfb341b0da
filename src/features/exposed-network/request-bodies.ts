import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { randomUUID } from 'node:crypto';
import type { EventParams, Layer } from '../../wire/layer.js';
import { raceAbort } from '../../shared/abort.js';
import { delay } from '../../shared/clock.js';
import { ShownError } from './response-bodies.js';
import type { Targets } from './targets.js';
import type { Channel, ChannelKind } from './bridge.js';
import type { SliceMessage } from './page-fetch.js';

/** Maximum size in bytes of the bodies of several requests together: a browser sends each as a whole, and a server can be slow. */
const MOST_UPLOADING = 512 * 1024 * 1024;
/** The end of the head of a file in a form, and its maximum length in bytes. */
const FILE_HEAD = /; filename="([^"\r\n]+)"(?:\r\n[^\r\n]+)*\r\n\r\n$/;
const LONGEST_FILE_HEAD = 2000;

const TOO_MANY = 'the bodies of the requests that are under way would have more than 512 MB.';
const UNREADABLE =
  'the body can not be read: it is a stream, or a form with two files of one name or with a file of the machine of the browser. Pass the content of the file to the page.';

type PausedRequest = Pick<EventParams<'Fetch.requestPaused'>, 'request' | 'frameId'>;

/** A file of this machine that the library has put into a form. */
interface FormFile {
  readonly path: string;
  /** The name of the file in the form. */
  readonly name: string;
  /** The frame of the form, or its page. */
  readonly frameId: string | undefined;
}

/** The places where bodies can be, besides in a request. */
export interface Sources {
  readonly targets: Targets;
  /** Those that pages keep. */
  readonly kept: {
    sizeWith(body: Buffer): number | undefined;
    read(body: Buffer, size: number, signal: AbortSignal): Promise<Buffer>;
  };
}

/** A body in the memory of this process, until it is disposed. */
interface Upload extends Disposable {
  /** Undefined if the request has none. */
  readonly bytes: Buffer | undefined;
}

export class RequestBodies {
  /** The files that the library has put into forms. */
  readonly #files: FormFile[] = [];
  /** Bytes of the bodies of requests that have no answer. */
  #uploading = 0;

  readonly layer: Layer = {
    name: 'exposed-uploads',
    commands: {
      'DOM.setFileInputFiles': ({ params, session, client }, next) => {
        if (client.kind === 'library') this.#note(params.files, session?.target.id);
        return next();
      },
      'input.setFiles': ({ params, client }, next) => {
        if (client.kind === 'library') this.#note(params.files, params.context);
        return next();
      },
    },
  };

  #note(files: readonly string[], frameId: string | undefined): void {
    for (const path of files)
      this.#files.push({ path, frameId, name: basename(path).replaceAll('"', '%22') });
  }

  /** Reads the body of a request, which loses its own. Rejects if it can't be read, or others occupy the memory. */
  async read(
    { request, frameId }: PausedRequest,
    { targets, kept }: Sources,
    signal: AbortSignal,
  ): Promise<Upload> {
    const { postDataEntries: parts } = request;
    if (request.hasPostData === true && !parts) throw new ShownError(UNREADABLE);
    // The text of a body is larger than its bytes.
    delete request.postDataEntries;
    const read: Buffer[] = [];
    for (const { bytes } of parts ?? [])
      read.push(bytes === undefined ? await this.#readFile(read.at(-1), frameId, targets) : bytesOf(bytes));
    const sent = parts && (read.length === 1 ? read[0]! : Buffer.concat(read));
    // A page can name any size.
    const named = sent && kept.sizeWith(sent);
    const size = named ?? sent?.length ?? 0;
    const isAlone = this.#uploading === 0 && named === undefined;
    if (!isAlone && this.#uploading + size > MOST_UPLOADING) throw new ShownError(TOO_MANY);
    this.#uploading += size;
    const free = () => void (this.#uploading -= size);
    try {
      const bytes = named === undefined ? sent : await kept.read(sent!, named, signal);
      return { bytes, [Symbol.dispose]: free };
    } catch (error) {
      free();
      throw error;
    }
  }

  /**
   * The browser does not send the files of a form. Those that the library has put into forms of this page are on this machine, unless two
   * of them have the name.
   */
  async #readFile(before: Buffer | undefined, frameId: string, targets: Targets): Promise<Buffer> {
    const [, name = ''] = FILE_HEAD.exec(String(before?.subarray(-LONGEST_FILE_HEAD))) ?? [];
    const page = await targets.containing(frameId);
    const paths = new Set<string>();
    for (const file of this.#files)
      if (file.name === name && page && (await targets.containing(file.frameId ?? '')) === page)
        paths.add(file.path);
    const [path, other] = paths;
    const file =
      path === undefined || other !== undefined ? undefined : readFile(path).catch(() => undefined);
    const content = await file;
    if (!content) throw new ShownError(UNREADABLE);
    return content;
  }
}

/** A small part is in base64. */
function bytesOf(part: string | Uint8Array): Buffer {
  if (typeof part === 'string') return Buffer.from(part, 'base64');
  return Buffer.from(part.buffer, part.byteOffset, part.byteLength);
}

const MEGABYTE = 1024 * 1024;
/**
 * Bytes of a body from which a page sends a placeholder. Over a debugging port, 256 MB of all messages may wait for this process: Chromium
 * drops others. It sends a body twice, as JSON and in base64: each byte becomes 2.3 to 7.3 characters.
 */
const MOST = 16 * MEGABYTE;
/** Bytes that are read at once. */
const SLICE = 4 * MEGABYTE;
/** Number of bodies that pages keep, or have kept. */
const MOST_KEPT = 2000;
/** A request can arrive before the message of its page: how often, and after how many ms, it is looked for. */
const LOOKS = 100;
const PAUSE = 20;
/** No page has it before this process exposes hosts. */
const MARK = `exposed-upload-${randomUUID()} `;
const PLACEHOLDER = new RegExp(`${MARK}([\\d-]+) (\\d{1,12});`, 'g');
const GONE = 'the page that sends the body has been closed, or can not read its file.';

/** What a body has in place of another one that is large. */
interface Placeholder {
  readonly id: string;
  readonly size: number;
  /** The bytes between which it is. */
  readonly from: number;
  readonly to: number;
}

/** The settings of the script in pages. */
export const UPLOAD_VALUES = { mark: MARK, most: MOST };

/** The large bodies of requests: pages keep them, and send placeholders, and this process reads them in slices. */
export class ExposedUploads implements ChannelKind {
  readonly most = MOST_KEPT;
  /** Who keeps a body, by its id. */
  readonly #kept = new Map<string, Channel>();

  /** A page keeps a body. */
  opened(channel: Channel): void {
    // The id of another page's body is a secret.
    if (this.#kept.has(channel.id)) channel.end();
    else this.#kept.set(channel.id, channel);
  }

  ended({ id }: Channel): void {
    this.#kept.delete(id);
  }

  /** Returns the size in bytes that a body has with what its placeholders stand for. Undefined if it has none. */
  sizeWith(body: Buffer): number | undefined {
    if (!body.includes(MARK)) return undefined;
    return placeholdersOf(body).reduce((sum, { size, from, to }) => sum + size - (to - from), body.length);
  }

  /**
   * Reads what the placeholders of a body stand for. Rejects if a page does not answer.
   *
   * @param size Of the whole, in bytes.
   */
  async read(body: Buffer, size: number, signal: AbortSignal): Promise<Buffer> {
    const whole = Buffer.allocUnsafe(size);
    let from = 0;
    let at = 0;
    for (const one of placeholdersOf(body)) {
      at += body.copy(whole, at, from, one.from);
      at = await this.#readInto(whole, at, one, signal);
      from = one.to;
    }
    body.copy(whole, at, from);
    return whole;
  }

  async #readInto(
    whole: Buffer,
    at: number,
    { id, size }: Placeholder,
    signal: AbortSignal,
  ): Promise<number> {
    for (let from = 0; from < size; from += SLICE) {
      const to = Math.min(from + SLICE, size);
      const channel = await this.#channelOf(id, signal);
      // A page can leave it without an answer.
      const sent = channel.send({ from, to } satisfies Omit<SliceMessage, 'id'>);
      const slice = await raceAbort(sent, signal);
      const length = typeof slice === 'string' ? whole.write(slice, at + from, to - from, 'base64') : 0;
      if (length !== to - from) throw new ShownError(GONE);
    }
    return at + size;
  }

  async #channelOf(id: string, signal: AbortSignal): Promise<Channel> {
    for (let looks = LOOKS; looks > 0; looks--) {
      const channel = this.#kept.get(id);
      if (channel) return channel;
      await delay(PAUSE, signal);
    }
    throw new ShownError(GONE);
  }
}

function placeholdersOf(body: Buffer): Placeholder[] {
  return [...body.toString('latin1').matchAll(PLACEHOLDER)].map(
    ({ 0: { length }, 1: id, 2: size, index }) => {
      return { id: id!, size: Number(size), from: index, to: index + length };
    },
  );
}
