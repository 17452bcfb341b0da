import { randomUUID } from 'node:crypto';
import { open, rename, rm, type FileHandle } from 'node:fs/promises';
import { LinkedAbort } from '../shared/abort.js';
import { delay } from '../shared/clock.js';
import { duration, type ErrorFacts } from '../shared/errors.js';
import type { Checked } from '../shared/options.js';
import { ReplayNotReadyError } from '../shared/service-errors.js';
import type { ServiceRequest } from './browser-service.js';
import type { ServiceClient } from './client.js';
import type { downloadChecks, DownloadOptions } from './pool-options.js';
import { expectSuccess, responseError, retryAfter, type HttpResponse } from './response.js';

/** Milliseconds between two requests if the service names no time, and the minimum. */
const DEFAULT_PAUSE = 1000;
const SHORTEST_PAUSE = 100;

/** A downloaded video. */
export interface DownloadedReplay {
  /** Path of the file. */
  path: string;
  /** Size of the file in bytes. */
  bytes: number;
  /** MIME type, such as `video/mp4`; missing if the service sent none. */
  type?: string;
}

interface Download extends Checked<typeof downloadChecks> {
  readonly replayId: string;
  /** Path of the file. */
  readonly file: string;
  readonly facts: ErrorFacts;
}

/** Writes the video to a file beside its final place and moves it there when it is complete. */
export async function downloadReplay(
  client: ServiceClient,
  request: ServiceRequest,
  download: Download,
): Promise<DownloadedReplay> {
  const { file: path, facts, onProgress } = download;
  const part = `${path}.${randomUUID()}.part`;
  const file = await open(part, 'wx', 0o600);
  try {
    const video = new VideoFile(file, facts, onProgress);
    await receive((timeout) => {
      const { signal } = download;
      return client.send(request, { facts, timeout, signal, onContent: video.write });
    }, download);
    await file.close();
    await rename(part, path);
    return { path, bytes: video.received, ...(video.type && { type: video.type }) };
  } catch (error) {
    await file.close();
    await rm(part, { force: true });
    throw error;
  }
}

/** Repeats the request while the service answers 202: it is still writing the video. */
async function receive(
  send: (timeout: number) => Promise<HttpResponse>,
  { replayId, timeout, signal, facts }: Download,
): Promise<void> {
  const limit = new LinkedAbort(undefined, timeout);
  try {
    for (;;) {
      const response = await send(Math.max(1, limit.timeLeft));
      expectSuccess(response, facts);
      if (response.status === 200) return;
      if (response.status !== 202) throw responseError('is not a video', response, facts);
      const pause = Math.max(SHORTEST_PAUSE, retryAfter(response.headers) ?? DEFAULT_PAUSE);
      if (pause >= limit.timeLeft) {
        const message = `The video of replay ${replayId} was not ready within ${duration(timeout)}. Increase timeout, or try again later.`;
        throw new ReplayNotReadyError(message, { ...facts, elapsed: limit.elapsed });
      }
      await delay(pause, signal);
    }
  } finally {
    limit.dispose();
  }
}

/** The file that receives a video, chunk by chunk: a long video does not fill the memory. */
class VideoFile {
  received = 0;
  type: string | undefined;
  readonly #file: FileHandle;
  readonly #facts: ErrorFacts;
  readonly #onProgress: DownloadOptions['onProgress'];

  constructor(file: FileHandle, facts: ErrorFacts, onProgress: DownloadOptions['onProgress']) {
    this.#file = file;
    this.#facts = facts;
    this.#onProgress = onProgress;
  }

  readonly write = async (
    content: AsyncIterable<Uint8Array>,
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

  /** Rejects an error page with status 200. */
  #checkHeaders(headers: HttpResponse['headers']): void {
    const { 'content-type': type, 'content-encoding': encoding = 'identity' } = headers;
    const response = { status: 200, headers, body: '' };
    if (encoding !== 'identity')
      throw responseError(`has the content encoding ${String(encoding)}`, response, this.#facts);
    if (/^text\/|json/i.test(String(type)))
      throw responseError(`has the content type ${String(type)} instead of a video`, response, this.#facts);
    this.type = type?.toString();
  }
}
