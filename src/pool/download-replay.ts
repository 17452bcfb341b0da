import { randomUUID } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { clock, delay } from '../shared/clock.js';
import { duration, type ErrorFacts } from '../shared/errors.js';
import type { Checked } from '../shared/options.js';
import { ReplayNotReadyError } from '../shared/service-errors.js';
import type { ServiceRequest } from '../services/browser-service.js';
import type { SendOptions, ServiceClient } from './client.js';
import type { downloadChecks } from './pool-options.js';
import { expectSuccess, responseError, retryAfter, type HttpResponse } from '../net/response.js';

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
  readonly path: string;
  readonly facts: ErrorFacts;
}

/** Writes the video to a file beside its final place and moves it there when it is complete. */
export async function downloadReplay(
  client: ServiceClient,
  request: ServiceRequest,
  download: Download,
): Promise<DownloadedReplay> {
  const { path, facts, onProgress, signal } = download;
  const part = `${path}.${randomUUID()}.part`;
  const file = await open(part, 'wx', 0o600);
  let bytes = 0;
  let type: string | undefined;
  // Chunk by chunk: a long video does not fill the memory.
  const onContent: SendOptions['onContent'] = async (content, headers) => {
    type = videoType(headers, facts);
    const total = Number(headers['content-length']);
    for await (const chunk of content) {
      await file.appendFile(chunk);
      bytes += chunk.length;
      onProgress?.({ received: bytes, ...(total > 0 && { total }) });
    }
  };
  try {
    await receive((timeout) => client.send(request, { facts, timeout, signal, onContent }), download);
    await file.close();
    await rename(part, path);
    return { path, bytes, ...(type && { type }) };
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
  const began = clock.now();
  for (;;) {
    const response = await send(Math.max(1, timeout - (clock.now() - began)));
    expectSuccess(response, facts);
    if (response.status === 200) return;
    if (response.status !== 202) throw responseError('is not a video', response, facts);
    const pause = Math.max(SHORTEST_PAUSE, retryAfter(response.headers) ?? DEFAULT_PAUSE);
    const elapsed = clock.now() - began;
    if (pause >= timeout - elapsed) {
      const message = `The video of replay ${replayId} was not ready within ${duration(timeout)}. Increase timeout, or try again later.`;
      throw new ReplayNotReadyError(message, { ...facts, elapsed });
    }
    await delay(pause, signal);
  }
}

/** The content type of a video. Rejects an error page with status 200. */
function videoType(headers: HttpResponse['headers'], facts: ErrorFacts): string | undefined {
  const { 'content-type': type, 'content-encoding': encoding = 'identity' } = headers;
  const response = { status: 200, headers, body: '' };
  if (encoding !== 'identity')
    throw responseError(`has the content encoding ${String(encoding)}`, response, facts);
  if (/^text\/|json/i.test(String(type)))
    throw responseError(`has the content type ${String(type)} instead of a video`, response, facts);
  return type?.toString();
}
