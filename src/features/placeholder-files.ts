import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { PassThrough, Transform, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { clock } from '../shared/clock.js';
import { namingFile } from '../shared/naming-file.js';

/** Milliseconds in which the browser must download a placeholder: a distant browser is slow, and a frame may not download anything. */
const LONGEST_WAIT = 60_000;

const NONE = () => false;

/** The content of a file that was lost before its download. */
const LOST = new PassThrough().destroy();

/**
 * Files whose content is on this machine. The browser downloads a few bytes in their place, with their name, and the content takes the
 * place of these bytes before the library learns that the download has completed.
 */
export class PlaceholderFiles {
  /** Whether the files that a context downloads arrive on this machine. */
  arriveFrom: (contextId: string | undefined) => boolean = NONE;
  /** By the size of the placeholder and the URL. */
  #waiting: Map<string, Readable> | undefined;
  #lastSize = 0;

  /** Adds a file. Returns the size of its placeholder in bytes, which no other one has. */
  add(url: string, content: Readable): number {
    const key = keyOf(url, ++this.#lastSize);
    const waiting = (this.#waiting ??= new Map());
    waiting.set(key, content);
    const timer = clock.setTimeout(() => waiting.has(key) && content.destroy(), LONGEST_WAIT).unref();
    content.once('close', () => {
      clock.clearTimeout(timer);
      // Its placeholder must not pass for the file.
      if (waiting.has(key)) waiting.set(key, LOST);
    });
    // Whoever reads the content receives its error.
    content.on('error', () => {});
    return this.#lastSize;
  }

  /** Returns the content of a file, once, by its download. It can have failed. */
  take(url: string, size: number): Readable | undefined {
    const key = keyOf(url, size);
    const content = this.#waiting?.get(key);
    this.#waiting?.delete(key);
    return content;
  }
}

interface WriteOptions {
  /** Called with the number of bytes so far; throws to refuse more. */
  readonly onPart: (size: number) => void;
  readonly signal: AbortSignal;
}

/** Writes the content of a file, as fast as the disk takes it. The file appears when it is complete. */
export async function writeContent(
  content: Readable,
  path: string,
  { onPart, signal }: WriteOptions,
): Promise<void> {
  signal.throwIfAborted();
  // A pipeline that begins with a destroyed stream may never end.
  if (content.destroyed) throw content.errored ?? new Error('its content was lost');
  const part = `${path}.part`;
  let size = 0;
  const count = new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      size += chunk.length;
      try {
        onPart(size);
        done(undefined, chunk);
      } catch (error) {
        done(error as Error);
      }
    },
  });
  const file = createWriteStream(part, { flags: 'wx', mode: 0o600 });
  try {
    await namingFile(path, () => pipeline(content, count, file, { signal }));
    await rename(part, path);
  } catch (error) {
    // A content that breaks off at once ends before its file exists.
    if (!file.closed) await new Promise<void>((resolve) => file.once('close', () => resolve()));
    await rm(part, { force: true });
    signal.throwIfAborted();
    throw error;
  }
}

function keyOf(url: string, size: number): string {
  // A browser can name anything.
  if (!URL.canParse(url)) return '';
  const parsed = new URL(url);
  parsed.hash = parsed.username = parsed.password = '';
  return `${size} ${parsed.href}`;
}
