import { randomUUID } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { clock, delay } from '../shared/clock.js';
import { duration, type ErrorFacts } from '../shared/errors.js';
import type { Checked } from '../shared/options.js';
import { LinkedAbort } from '../shared/abort.js';
import { routeTo } from '../shared/network.js';
import { PoolConnectionError, ReplayNotReadyError } from '../shared/service-errors.js';
import { webFault } from '../shared/urls.js';
import { openOnce } from '../net/http.js';
import { explain } from '../net/reachability.js';
import type { ServiceRequest, VideoSearch } from '../services/browser-service.js';
import type { SendOptions, ServiceClient } from './client.js';
import type { downloadChecks } from './pool-options.js';
import {
  contentOf,
  expectSuccess,
  readAs,
  LONGEST_PAUSE,
  readResponse,
  responseError,
  retryAfter,
  type HttpResponse,
} from '../net/response.js';
import { namingFile } from '../shared/naming-file.js';

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

type OnContent = NonNullable<SendOptions['onContent']>;

/** Writes the video to a file beside its final place and moves it there when it is complete. */
export async function downloadReplay(
  client: ServiceClient,
  video: ServiceRequest | VideoSearch,
  download: Download,
): Promise<DownloadedReplay> {
  const { path, facts, onProgress } = download;
  const part = `${path}.${randomUUID()}.part`;
  const file = await open(part, 'wx', 0o600);
  let bytes = 0;
  let type: string | undefined;
  // Chunk by chunk: a long video does not fill the memory.
  const onContent: OnContent = async (content, headers) => {
    type = videoType(headers, facts);
    const total = Number(headers['content-length']);
    for await (const chunk of content) {
      await namingFile(path, () => file.appendFile(chunk));
      bytes += chunk.length;
      onProgress?.({ received: bytes, ...(total > 0 && { total }) });
    }
  };
  try {
    const source = new VideoSource(client, download, onContent);
    await ('find' in video ? source.search(video) : source.receive(video));
    await file.close();
    await rename(part, path);
    return { path, bytes, ...(type && { type }) };
  } catch (error) {
    await file.close();
    await rm(part, { force: true });
    throw error;
  }
}

/** Where the video comes from. The option `timeout` covers everything until its content begins. */
class VideoSource {
  readonly #client: ServiceClient;
  readonly #download: Download;
  readonly #onContent: OnContent;
  readonly #began = clock.now();

  constructor(client: ServiceClient, download: Download, onContent: OnContent) {
    this.#client = client;
    this.#download = download;
    this.#onContent = onContent;
  }

  /** Repeats the request while the service answers 202: it is still writing the video. */
  async receive(request: ServiceRequest): Promise<void> {
    const onContent = this.#onContent;
    for (;;) {
      const response = this.#expectSuccess(await this.#send(request, { onContent }));
      if (response.status === 200) return;
      if (response.status !== 202) throw responseError('is not a video', response, this.#download.facts);
      await this.#pause(retryAfter(response.headers));
    }
  }

  /** Repeats the search until the service has written the video, and loads it. */
  async search({ order, find, read }: VideoSearch): Promise<void> {
    if (order) this.#expectSuccess(await this.#send(order));
    for (;;) {
      const response = await this.#send(find);
      const place = readAs(response, this.#download.facts, read);
      if (typeof place === 'string') return this.#load(place, response);
      if (place !== undefined) return this.#follow(place);
      await this.#pause(retryAfter(response.headers));
    }
  }

  /** Loads the video from the service, or from the address to which it redirects. */
  async #follow(request: ServiceRequest): Promise<void> {
    const response = await this.#send(request, { onContent: this.#onContent });
    const { location } = response.headers;
    const isRedirect = response.status >= 300 && response.status < 400 && typeof location === 'string';
    if (isRedirect) return this.#load(location, response);
    this.#expectSuccess(response);
  }

  /** Loads the video from another server, which gets neither the token nor the headers of the service. */
  async #load(address: string, named: HttpResponse): Promise<void> {
    const { facts, signal } = this.#download;
    const { trust } = this.#client;
    const fault = webFault(address, trust);
    if (fault !== undefined) throw responseError(`names an address of the video that ${fault}`, named, facts);
    const url = new URL(address);
    const limit = new LinkedAbort(signal, this.#timeLeft);
    const fail = (cause: unknown) => {
      if (signal?.aborted) throw signal.reason;
      const message = `The video could not be loaded from ${url.host}: ${explain(cause)}.`;
      throw new PoolConnectionError(message, 'ERR_POOL_NO_RESPONSE', { ...facts, cause });
    };
    try {
      const route = routeTo(url, trust.network);
      const message = { url, headers: { accept: '*/*' } };
      const response = await openOnce(message, { route, signal: limit.signal }).catch(fail);
      const { statusCode: status = 0, headers } = response;
      if (status !== 200) {
        const refusal = await readResponse({ statusCode: status, headers, body: response });
        throw responseError(`of ${url.host} is not a video`, refusal, facts);
      }
      limit.clearTimeout();
      response.setTimeout(LONGEST_PAUSE, () => response.destroy(new Error('no data arrives')));
      const content = contentOf(response, fail);
      await this.#onContent(content, headers).finally(() => response.on('error', () => {}).destroy());
    } finally {
      limit.dispose();
    }
  }

  #send(request: ServiceRequest, more: Pick<SendOptions, 'onContent'> = {}): Promise<HttpResponse> {
    const { facts, signal } = this.#download;
    return this.#client.send(request, { facts, signal, timeout: this.#timeLeft, ...more });
  }

  #expectSuccess(response: HttpResponse): HttpResponse {
    return expectSuccess(response, this.#download.facts);
  }

  get #timeLeft(): number {
    return Math.max(1, this.#download.timeout - (clock.now() - this.#began));
  }

  /** Waits before the next request. */
  async #pause(requested: number | undefined): Promise<void> {
    const { replayId, timeout, signal, facts } = this.#download;
    const elapsed = clock.now() - this.#began;
    const pause = Math.max(SHORTEST_PAUSE, requested ?? DEFAULT_PAUSE);
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
