import { lookup } from 'node:dns';
import http, { type ClientRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import https from 'node:https';
import type { LookupFunction } from 'node:net';
import { promisify } from 'node:util';
import zlib from 'node:zlib';
import { clock } from '../../shared/clock.js';
import type { ExposedUrl } from './exposed-hosts.js';

/** A request of a page, to be sent from this machine. */
export interface ExposedRequest {
  readonly url: ExposedUrl;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | undefined;
  /** The request comes from an EventSource, which connects again when its response ends. */
  readonly isEventSource: boolean;
}

/** A response as a page receives it. */
export interface ExposedResponse {
  readonly status: number;
  readonly reason: string;
  /** Each as `name: value`, with one character for each byte. */
  readonly headers: readonly string[];
  readonly body: Buffer;
  /** The response did not end in time: `body` is its beginning. */
  readonly isCut: boolean;
}

/** When a response that does not end is cut, in ms. CDP has no command that delivers a response in parts. */
export interface StreamLimits {
  /** From the beginning of a stream of events, which its EventSource requests again. */
  readonly eventSource: number;
  /** Without a byte. */
  readonly silence: number;
  /** From the beginning of a response that does not name its length. */
  readonly total: number;
}

const LIMITS: StreamLimits = { eventSource: 1500, silence: 10_000, total: 30_000 };
/** Maximum size of a body in bytes: Chromium closes a connection with a message of more than 100 MB, which is encoded in base64. */
const LARGEST_BODY = 64 * 1024 * 1024;
/** As in Chromium. */
const LARGEST_HEADERS = 256 * 1024;
/** Number of connections to one host. A browser has 6; here, streams that are cut only later occupy some. */
const MOST_CONNECTIONS = 24;

/** Headers of one connection, which must not be forwarded. */
const HOP_BY_HOP =
  /^(connection|content-length|expect|host|keep-alive|proxy-(authenticate|authorization|connection)|te|trailer|transfer-encoding|upgrade)$/i;
/** Of headers that Chromium adds only after the interception. */
const ADDED = { 'accept-encoding': 'gzip, deflate, br', 'accept-language': 'en-US,en;q=0.9' };

/** The body of a request or a response is larger than CDP can carry. */
export class TooLargeError extends Error {}

/** Sends requests from this machine, over connections that are kept open. */
export class ExposedSender {
  /** Accept certificates that no known authority has signed. */
  acceptsInsecureCerts = false;
  readonly #limits: StreamLimits;
  readonly #agents = {
    'http:': new http.Agent({ keepAlive: true, maxSockets: MOST_CONNECTIONS }),
    'https:': new https.Agent({ keepAlive: true, maxSockets: MOST_CONNECTIONS }),
  };

  constructor(limits: StreamLimits = LIMITS) {
    this.#limits = limits;
  }

  /** Sends a request. Follows no redirect: the browser does. Rejects with the error of the connection. */
  async send(request: ExposedRequest, signal: AbortSignal): Promise<ExposedResponse> {
    try {
      return await this.#send(request, signal);
    } catch (error) {
      // The server closed an idle connection while the request was sent.
      if (!(error instanceof StaleConnectionError)) throw error;
      return this.#send(request, signal, false);
    }
  }

  close(): void {
    for (const agent of Object.values(this.#agents)) agent.destroy();
  }

  async #send(request: ExposedRequest, signal: AbortSignal, mayReuse = true): Promise<ExposedResponse> {
    const response = await this.#request(request, signal, mayReuse);
    const encodings = (response.headers['content-encoding'] ?? '').toLowerCase().match(/[^\s,]+/g) ?? [];
    const { bytes, isCut } = await this.#read(response, request.isEventSource);
    const body = await decode(bytes, encodings);
    const isChanged = isCut || body !== bytes;
    const { rawHeaders } = response;
    const headers = rawHeaders.flatMap((name, index) => {
      if (index % 2 === 1) return [];
      const isLength = /^content-length$/i.test(name);
      const isKept = isLength ? !isChanged : !HOP_BY_HOP.test(name);
      const isStale = body !== bytes && /^content-encoding$/i.test(name);
      return isKept && !isStale ? [`${name}: ${rawHeaders[index + 1]}`] : [];
    });
    return { status: response.statusCode!, reason: response.statusMessage ?? '', headers, body, isCut };
  }

  #request(
    { url, method, headers, body }: ExposedRequest,
    signal: AbortSignal,
    mayReuse: boolean,
  ): Promise<IncomingMessage> {
    const { protocol, hostname } = new URL(url);
    const kept = Object.entries(headers).filter(([name]) => !HOP_BY_HOP.test(name));
    const options: RequestOptions & https.RequestOptions = {
      method,
      headers: { ...ADDED, ...Object.fromEntries(kept.map(([name, value]) => [name.toLowerCase(), value])) },
      // Other idle connections may be closed, too.
      agent: mayReuse && this.#agents[protocol as 'http:'],
      maxHeaderSize: LARGEST_HEADERS,
      signal,
      ...(hostname.endsWith('.localhost') && { lookup: lookupLocalhost }),
      ...(this.acceptsInsecureCerts && { rejectUnauthorized: false }),
    };
    return new Promise((resolve, reject) => {
      const sent: ClientRequest = (protocol === 'https:' ? https : http).request(url, options);
      sent.once('response', resolve);
      sent.once('error', (error: NodeJS.ErrnoException) => {
        // A browser repeats a request of any method then.
        const isStale = sent.reusedSocket && /^(ECONNRESET|EPIPE)$/.test(error.code ?? '');
        reject(isStale ? new StaleConnectionError() : error);
      });
      sent.end(body);
    });
  }

  /** Reads a body until its end, or until it is cut. */
  #read(response: IncomingMessage, isEventSource: boolean): Promise<{ bytes: Buffer; isCut: boolean }> {
    const { silence, total, eventSource } = this.#limits;
    const chunks: Buffer[] = [];
    let size = 0;
    return new Promise((resolve, reject) => {
      const end = (isCut: boolean) => {
        clock.clearTimeout(silent);
        clock.clearTimeout(longest);
        resolve({ bytes: chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks), isCut });
        if (isCut) response.destroy();
      };
      const cut = () => end(true);
      const silent = clock.setTimeout(cut, silence);
      const length = response.headers['content-length'];
      const longest = length ? undefined : clock.setTimeout(cut, isEventSource ? eventSource : total);
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
        size += chunk.length;
        silent.refresh();
        if (size <= LARGEST_BODY) return;
        response.destroy(new TooLargeError());
      });
      response.once('end', () => end(false));
      // After `end` and after a cut, it has no effect.
      if (Number(length) > LARGEST_BODY) response.destroy(new TooLargeError());
      response.once('error', (error) => {
        clock.clearTimeout(silent);
        clock.clearTimeout(longest);
        reject(error);
      });
    });
  }
}

class StaleConnectionError extends Error {}

/** A browser resolves these names by itself, and not every system does. */
const lookupLocalhost: LookupFunction = (_hostname, options, callback) =>
  lookup('localhost', options, callback);

type Decoder = (bytes: Buffer) => Promise<Buffer>;

/** Accept a body that was cut. */
const CUT = { finishFlush: zlib.constants.Z_SYNC_FLUSH, maxOutputLength: LARGEST_BODY };
const CUT_BROTLI = { ...CUT, finishFlush: zlib.constants.BROTLI_OPERATION_FLUSH };

const unzip: Decoder = async (bytes) => promisify(zlib.unzip)(bytes, CUT);

const DECODERS: Readonly<Record<string, Decoder>> = {
  identity: async (bytes) => bytes,
  gzip: unzip,
  'x-gzip': unzip,
  // Some servers send it without its header.
  deflate: async (bytes) => unzip(bytes).catch(() => promisify(zlib.inflateRaw)(bytes, CUT)),
  br: async (bytes) => promisify(zlib.brotliDecompress)(bytes, CUT_BROTLI),
};

/** Undoes the encodings of a body. Leaves an encoding that was not requested, as a browser does. */
async function decode(bytes: Buffer, encodings: readonly string[]): Promise<Buffer> {
  const decoders = encodings.map((name) => DECODERS[name]);
  if (bytes.length === 0 || decoders.includes(undefined)) return bytes;
  let body = bytes;
  for (const decoder of decoders.toReversed()) body = await decoder!(body);
  return body;
}
