import { randomUUID } from 'node:crypto';
import { open, rename, rm, type FileHandle } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { InvalidOptionError, rejectUnknownOptions } from '../shared/errors.js';
import { ReplayNotReadyError } from '../shared/service-errors.js';
import { Deadline, raceAbort } from '../shared/abort.js';
import type { HttpResponse } from './http.js';
import type { DownloadedReplay, DownloadOptions } from './pool-options.js';
import { replaysPath, type SessionFacts } from './replay-requests.js';
import { expectSuccess, responseError } from './responses.js';
import { retryAfter } from './retry-after.js';
import type { ServiceLink } from './service-link.js';

/** Milliseconds between two requests where the service names none, and the fewest. */
const PAUSE = 1000;
const SHORTEST_PAUSE = 100;

type Download = DownloadOptions & { replayId: string; path: string };

/** Writes the film beside its place and moves it there once it is whole: nobody finds half of one. */
export async function downloadReplay(
  link: ServiceLink,
  facts: SessionFacts,
  download: Download,
): Promise<DownloadedReplay> {
  checkDownload(download);
  const request = { method: 'GET', path: replaysPath(link, facts, download.replayId), facts } as const;
  const part = `${download.path}.${randomUUID()}.part`;
  const file = await open(part, 'wx');
  try {
    const film = new Film(file, facts, download.onProgress);
    await receive(link, { ...request, onContent: film.write }, download);
    await file.close();
    await rename(part, download.path);
    return { path: download.path, bytes: film.received, ...(film.type && { type: film.type }) };
  } catch (error) {
    await file.close();
    await rm(part, { force: true });
    throw error;
  }
}

/** Asks until the film comes: while it is being written, the service answers 202. */
async function receive(
  link: ServiceLink,
  request: Omit<Parameters<ServiceLink['send']>[0], 'timeout'>,
  { replayId, timeout = 60_000, signal }: Download,
): Promise<void> {
  const deadline = new Deadline(timeout);
  for (;;) {
    const left = Math.max(1, deadline.remaining);
    const response = await link.send({ ...request, timeout: left, signal });
    expectSuccess(response, request.facts);
    if (response.status === 200) return;
    if (response.status !== 202) throw responseError('is no film', response, request.facts);
    const pause = Math.max(SHORTEST_PAUSE, retryAfter(response.headers) ?? PAUSE);
    if (pause >= deadline.remaining) {
      const message = `The film of replay ${replayId} was not written within ${timeout} ms.`;
      throw new ReplayNotReadyError(message, { ...request.facts, elapsed: deadline.elapsed });
    }
    await raceAbort(sleep(pause, undefined, { signal }), signal);
  }
}

/** The file that a film is written to, chunk by chunk: however long it is, little of it is in memory. */
class Film {
  received = 0;
  type: string | undefined;
  readonly #file: FileHandle;
  readonly #facts: SessionFacts;
  readonly #onProgress: DownloadOptions['onProgress'];

  constructor(file: FileHandle, facts: SessionFacts, onProgress: DownloadOptions['onProgress']) {
    this.#file = file;
    this.#facts = facts;
    this.#onProgress = onProgress;
  }

  readonly write = async (
    content: AsyncIterable<Buffer>,
    headers: HttpResponse['headers'],
  ): Promise<void> => {
    this.#checkHeaders(headers);
    const total = Number(headers['content-length']);
    for await (const chunk of content) {
      await this.#file.appendFile(chunk);
      this.received += chunk.length;
      this.#onProgress?.({ received: this.received, ...(total > 0 && { total }) });
    }
  };

  /** A page that says what went wrong, with status 200, is no film. */
  #checkHeaders(headers: HttpResponse['headers']): void {
    const { 'content-type': type, 'content-encoding': encoding = 'identity' } = headers;
    const response = { status: 200, headers, body: '' };
    if (encoding !== 'identity')
      throw responseError(`has the content encoding ${String(encoding)}`, response, this.#facts);
    if (/^text\/|json/i.test(String(type)))
      throw responseError(`is ${String(type)}, no film`, response, this.#facts);
    this.type = type?.toString();
  }
}

function checkDownload({ replayId: _id, path, ...options }: Download): void {
  rejectUnknownOptions(options, ['signal', 'timeout', 'onProgress'], 'downloadReplay');
  if (typeof path !== 'string' || path === '') {
    throw new InvalidOptionError('path', 'path must be the path of the file to write.');
  }
  const { timeout, onProgress } = options;
  if (timeout !== undefined && !(typeof timeout === 'number' && timeout > 0)) {
    throw new InvalidOptionError('timeout', 'timeout must be a number of milliseconds above 0.');
  }
  if (onProgress !== undefined && typeof onProgress !== 'function') {
    throw new InvalidOptionError('onProgress', 'onProgress must be a function.');
  }
}
