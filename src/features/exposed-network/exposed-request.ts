import http, { type ClientRequest, type RequestOptions } from 'node:http';
import type { ClientHttp2Session, IncomingHttpHeaders } from 'node:http2';
import https from 'node:https';
import { Duplex, pipeline, type Readable } from 'node:stream';
import zlib from 'node:zlib';
import { raceAbort } from '../../shared/abort.js';
import { isLoopback } from '../../shared/urls.js';
import type { ExposedUrl } from './exposed-hosts.js';
import {
  BodyMemory,
  BodyReader,
  LIMITS,
  type Body,
  type ReaderOptions,
  type StreamLimits,
} from './body-reader.js';
import { Http2Sessions } from './http2-sessions.js';
import { isLocalhost, routeTo } from './route.js';

/** A request of a page, to be sent from this machine. */
export interface ExposedRequest extends ReaderOptions {
  readonly url: ExposedUrl;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | undefined;
  /** Whether the body of a response is not read: it is the rest. */
  keeps?(this: void, head: ResponseHead): boolean;
}

/** The beginning of a response. */
export interface ResponseHead {
  readonly status: number;
  /** Each as `name: value`, with one character for each byte. */
  readonly headers: readonly string[];
  /** Of the body, in bytes; undefined if the response does not name it, or is compressed. */
  readonly length: number | undefined;
}

/** A response as a page receives it. */
export interface ExposedResponse extends Omit<ResponseHead, 'length'>, Body {
  readonly reason: string;
  /** The headers of the request, with those that were added. */
  readonly sent: Readonly<Record<string, string>>;
}

/** A response whose body has not been read. */
interface Received {
  readonly status: number;
  readonly reason: string;
  /** Names and values, in turn. */
  readonly rawHeaders: readonly string[];
  readonly encoding: string;
  /** In bytes; undefined if the response does not name it, or has no body. */
  readonly length: number | undefined;
  readonly stream: Readable;
  readonly sent: Readonly<Record<string, string>>;
}

/** A method of HTTP whose response has a body. */
const METHOD = /^(?!connect$)[\w!#$%&'*+.^`|~-]+$/i;
/** A browser repeats such a request once, over a new connection. */
const MISDIRECTED = 421;
/** Statuses of responses whose body a browser does not read. */
const RESET_CONTENT = 205;
const BODILESS = new Set([204, RESET_CONTENT, 304]);
/** As in Chromium. */
const LARGEST_HEADERS = 256 * 1024;
/** Number of connections to one host: in Chromium, that of all hosts. Its 6 for each host are for each context. */
const MOST_CONNECTIONS = 256;

/** Headers of one connection, which must not be forwarded. */
const HOP_BY_HOP =
  /^(connection|content-length|expect|host|keep-alive|proxy-(authenticate|authorization|connection)|te|trailer|transfer-encoding|upgrade)$/i;
/** The methods with which a browser names the length of a body that is not there. */
const NAMING_NO_BODY = /^(POST|PUT)$/;
/** A header that Chromium adds only after the interception. */
const LANGUAGE = 'en-US,en;q=0.9';

/** Sends requests from this machine, over connections that are kept open. */
export class ExposedSender {
  /** Accept certificates that no known authority has signed. */
  acceptsInsecureCerts = false;
  readonly #limits: StreamLimits;
  readonly #agents = {
    'http:': new http.Agent({ keepAlive: true, maxSockets: MOST_CONNECTIONS }),
    'https:': new https.Agent({ keepAlive: true, maxSockets: MOST_CONNECTIONS }),
  };
  readonly #http2 = new Http2Sessions();
  readonly #memory = new BodyMemory();

  constructor(limits: StreamLimits = LIMITS) {
    this.#limits = limits;
  }

  /** Sends a request. Follows no redirect: the browser does. Rejects with the error of the connection. */
  async send(request: ExposedRequest, signal: AbortSignal): Promise<ExposedResponse> {
    if (!METHOD.test(request.method)) throw new Error('The method is not one of HTTP.');
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
    this.#http2.close();
  }

  async #send(request: ExposedRequest, signal: AbortSignal, mayReuse = true): Promise<ExposedResponse> {
    const received = await this.#request(request, signal, mayReuse);
    if (received.status === MISDIRECTED && mayReuse) {
      received.stream.destroy();
      return this.#send(request, signal, false);
    }
    const { status, reason, rawHeaders, stream, sent } = received;
    if (rawHeaders.some((one) => one.includes('\0'))) {
      stream.destroy();
      throw new Error('A header contains a null byte.');
    }
    const headers = rawHeaders.flatMap((name, index) =>
      index % 2 === 0 ? [`${name}: ${rawHeaders[index + 1]}`] : [],
    );
    const facts = { status, reason, headers, sent };
    if (request.method === 'HEAD' || BODILESS.has(status)) {
      stream.on('error', () => {});
      // Its server can send one nevertheless.
      if (status === RESET_CONTENT) stream.destroy();
      else stream.resume();
      return { ...facts, body: [], isCut: false, free: () => {} };
    }
    const decoded = decode(stream, received.encoding);
    const isDecoded = decoded !== stream;
    const length = isDecoded ? undefined : received.length;
    if (request.keeps?.({ ...facts, length })) {
      // Whoever reads it receives its error.
      decoded.on('error', () => {});
      return { ...facts, rest: decoded, body: [], isCut: false, free: () => {} };
    }
    const how = { ...request, length, hasLength: received.length !== undefined };
    const read = await new BodyReader(decoded, this.#memory, this.#limits, how).read(signal);
    if (read.isCut) stream.destroy();
    return { ...facts, ...read };
  }

  async #request(request: ExposedRequest, signal: AbortSignal, mayReuse: boolean): Promise<Received> {
    const url = new URL(request.url);
    const route = routeTo(url);
    const rejectUnauthorized = !this.acceptsInsecureCerts;
    const kept = Object.entries(request.headers).filter(([name]) => !HOP_BY_HOP.test(name));
    const has = (name: string) => kept.some(([one]) => one.toLowerCase() === name);
    const length = request.body?.length ?? (NAMING_NO_BODY.test(request.method) ? 0 : undefined);
    const headers: Record<string, string> = {
      ...(!has('accept-encoding') && {
        'Accept-Encoding': has('range') ? 'identity' : encodingsFor(url),
      }),
      ...(!has('accept-language') && { 'Accept-Language': LANGUAGE }),
      ...Object.fromEntries(kept.map(([name, value]) => [name, asBytes(value)])),
      ...(length !== undefined && { 'Content-Length': String(length) }),
    };
    if (url.protocol === 'https:') {
      const session = await raceAbort(this.#http2.of(url, { rejectUnauthorized, route }), signal);
      if (session && !session.destroyed) return requestOver(session, url, { ...request, headers }, signal);
    }
    const options: RequestOptions & https.RequestOptions = {
      method: request.method,
      headers,
      // Other idle connections may be closed, too.
      agent: mayReuse && this.#agents[url.protocol as 'http:'],
      maxHeaderSize: LARGEST_HEADERS,
      // A browser reads what some servers of developers send: lines that end with LF only, and folded headers.
      insecureHTTPParser: true,
      signal,
      rejectUnauthorized,
      ...route,
    };
    return new Promise((resolve, reject) => {
      const sent: ClientRequest = (url.protocol === 'https:' ? https : http).request(url, options);
      // Node writes it in capitals.
      sent.method = request.method;
      // Without it, Node names a length of any method but a few.
      sent.useChunkedEncodingByDefault = false;
      sent.once('response', (stream) => {
        const { statusCode, statusMessage, rawHeaders, headers: read } = stream;
        const facts = { ...factsOf(read), sent: { Host: url.host, Connection: 'keep-alive', ...headers } };
        resolve({ status: statusCode!, reason: statusMessage ?? '', rawHeaders, stream, ...facts });
      });
      sent.once('error', (error: NodeJS.ErrnoException) => {
        // A browser repeats a request of any method then.
        const isStale = sent.reusedSocket && /^(ECONNRESET|EPIPE)$/.test(error.code ?? '');
        reject(isStale ? new StaleConnectionError() : error);
      });
      sent.end(request.body);
    });
  }
}

class StaleConnectionError extends Error {}

async function requestOver(
  session: ClientHttp2Session,
  { pathname, search, host }: URL,
  { method, headers, body }: Pick<ExposedRequest, 'method' | 'headers' | 'body'>,
  signal: AbortSignal,
): Promise<Received> {
  const pseudo = { ':method': method, ':path': `${pathname}${search}`, ':authority': host };
  const stream = session.request({ ...pseudo, ...headers }, { endStream: body === undefined, signal });
  return new Promise((resolve, reject) => {
    stream.once('response', (read) => {
      const named = Object.entries(read).filter(([name]) => !name.startsWith(':'));
      const rawHeaders = named.flatMap(([name, value]) => [value ?? []].flat().flatMap((one) => [name, one]));
      resolve({ status: read[':status']!, reason: '', rawHeaders, stream, sent: headers, ...factsOf(read) });
    });
    stream.once('error', (error: NodeJS.ErrnoException) => {
      // The server ended the connection before it read the request.
      reject(
        /^ERR_HTTP2_(GOAWAY_SESSION|INVALID_SESSION)$/.test(error.code ?? '')
          ? new StaleConnectionError()
          : error,
      );
    });
    if (body !== undefined) stream.end(body);
  });
}

function factsOf(headers: IncomingHttpHeaders): Pick<Received, 'encoding' | 'length'> {
  const length = headers['content-length'];
  return {
    encoding: headers['content-encoding'] ?? '',
    length: length === undefined ? undefined : Number(length),
  };
}

/** A header of CDP is decoded as UTF-8; one of Node has a character for each byte. */
export function asBytes(value: string): string {
  return Buffer.from(value).toString('latin1');
}

/** A browser accepts the newer encodings only where no old proxy can be between it and the server. */
function encodingsFor({ protocol, hostname }: URL): string {
  const isTrustworthy = protocol === 'https:' || isLoopback(hostname) || isLocalhost(hostname);
  return ['gzip', 'deflate', ...(isTrustworthy ? ['br', ...('zstd' in DECODERS ? ['zstd'] : [])] : [])].join(
    ', ',
  );
}

/** Accept a body that was cut. */
const CUT = { finishFlush: zlib.constants.Z_SYNC_FLUSH };

type Decoder = () => Duplex;

const unzip: Decoder = () => zlib.createUnzip(CUT);

const DECODERS: Readonly<Record<string, Decoder>> = {
  gzip: unzip,
  'x-gzip': unzip,
  deflate: () => Duplex.from(inflate),
  br: () => zlib.createBrotliDecompress({ finishFlush: zlib.constants.BROTLI_OPERATION_FLUSH }),
  ...zstd(),
};

/** Some servers send it without its header. */
async function* inflate(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  const chunks = source[Symbol.asyncIterator]();
  const first = await chunks.next();
  if (first.done) return;
  const [one = 0, two = 0] = first.value;
  const hasHeader = one % 16 === 8 && (one * 256 + two) % 31 === 0;
  const all = async function* () {
    yield first.value;
    yield* { [Symbol.asyncIterator]: () => chunks };
  };
  const inflater = hasHeader ? zlib.createInflate(CUT) : zlib.createInflateRaw(CUT);
  yield* pipeline(all, inflater, () => {}) as AsyncIterable<Buffer>;
}

/** Node has it from 22.15. */
function zstd(): Record<string, Decoder> {
  const { createZstdDecompress } = zlib as { createZstdDecompress?: () => Duplex };
  return createZstdDecompress ? { zstd: () => createZstdDecompress() } : {};
}

/** Undoes the encodings of a body. Leaves an encoding that was not requested, as a browser does. */
function decode(stream: Readable, encoding: string): Readable {
  const names = encoding.toLowerCase().match(/[^\s,]+/g) ?? [];
  const decoders = names.filter((name) => name !== 'identity').map((name) => DECODERS[name]);
  if (decoders.includes(undefined)) return stream;
  // An error reaches the last stream.
  return decoders.toReversed().reduce((body, create) => pipeline(body, create!(), () => {}), stream);
}
