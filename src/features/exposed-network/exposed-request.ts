import http2, { type ClientHttp2Session, type IncomingHttpHeaders } from 'node:http2';
import { Duplex, type Readable, pipeline } from 'node:stream';
import { type LookupFunction, isIP } from 'node:net';
import http, { type RequestOptions } from 'node:http';
import https from 'node:https';
import zlib from 'node:zlib';
import tls, { type TLSSocket } from 'node:tls';
import type { ResultOf } from '../../wire/layer.js';
import { raceAbort } from '../../shared/abort.js';
import { isLoopback } from '../../shared/urls.js';
import type { ExposedUrl } from './exposed-hosts.js';

/** A request of a page, to be sent from this machine. */
export interface ExposedRequest {
  readonly url: ExposedUrl;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | undefined;
}

/** What precedes the body of a response. */
export interface ResponseHead {
  readonly status: number;
  readonly reason: string;
  /** Each as `name: value`, with one character for each byte. */
  readonly headers: readonly string[];
  /** The headers of the request, with those that were added. */
  readonly sent: Readonly<Record<string, string>>;
}

/** A response whose body has not been read. */
export interface Received extends ResponseHead {
  /** The response names the length of what is sent. */
  readonly hasLength: boolean;
  /** The length of the body as it is read, in bytes; undefined if the response does not name it, or is compressed. */
  readonly length: number | undefined;
  /** The body without its encodings. Undefined if there is none. Whoever reads it receives its error. */
  readonly stream: Readable | undefined;
}

/** A response as Node reports it. */
interface Answer extends Omit<ResponseHead, 'headers'> {
  /** Names and values, alternating. */
  readonly rawHeaders: readonly string[];
  readonly read: IncomingHttpHeaders;
  readonly stream: Readable;
}

/** A method of HTTP whose response has a body. */
const METHOD = /^(?!connect$)[\w!#$%&'*+.^`|~-]+$/i;
/** A browser repeats such a request once, over a new connection. */
const MISDIRECTED = 421;
/** Statuses of responses whose body a browser does not read. */
const RESET_CONTENT = 205;
const BODILESS = new Set([204, RESET_CONTENT, 304]);
/** Most bytes of the headers of a response, as in Chromium. */
const LARGEST_HEADERS = 256 * 1024;
/** Most headers of a response over HTTP/2: each counts at least 32 bytes. */
const MOST_PAIRS = LARGEST_HEADERS / 32;
/** Number of connections to one host: in Chromium, that of all hosts. Its 6 for each host are for each context. */
const MOST_CONNECTIONS = 256;

const NO_RESPONSE = 'The server ended the request without a response.';
/** Number of encodings of one body: each needs memory, and a server can name any number of them. */
const MOST_ENCODINGS = 5;

/** Headers of one connection, which must not be forwarded. */
const HOP_BY_HOP =
  /^(connection|content-length|expect|host|keep-alive|proxy-(authenticate|authorization|connection)|te|trailer|transfer-encoding|upgrade)$/i;
/** The methods with which a browser names the length of a body that is not there. */
const NAMING_NO_BODY = /^(POST|PUT)$/;
/** What Chromium sends by default. */
const LANGUAGE = 'en-US,en;q=0.9';

/** Sends requests from this machine, over connections that are kept open. */
export class ExposedSender {
  /** Accept certificates that no known authority has signed. */
  acceptsInsecureCerts: boolean;
  /** What the browser adds only below the interception, and to the handshake of a WebSocket: its user agent and its languages. */
  userAgent: string | undefined;
  language: string | undefined = LANGUAGE;
  /** The headless shell has no settings of cookies, so it blocks none. */
  isShell = false;
  readonly #agents = {
    'http:': new http.Agent({ keepAlive: true, maxSockets: MOST_CONNECTIONS }),
    'https:': new https.Agent({ keepAlive: true, maxSockets: MOST_CONNECTIONS }),
  };
  readonly #http2 = new Http2Sessions();

  constructor(acceptsInsecureCerts = false) {
    this.acceptsInsecureCerts = acceptsInsecureCerts;
  }

  /** Sends a request. Follows no redirect: the browser does. Rejects with the error of the connection. */
  async send(request: ExposedRequest, signal: AbortSignal): Promise<Received> {
    if (!METHOD.test(request.method)) throw new Error('The method is not one of HTTP.');
    const answer = await this.#exchange(request, signal);
    const authorization = authorizationFor(request, answer);
    if (authorization === undefined) return readAnswer(answer, request);
    answer.stream.on('error', () => {}).destroy();
    const headers = { ...request.headers, Authorization: authorization };
    return readAnswer(await this.#exchange({ ...request, headers }, signal), request);
  }

  /** Sends a request, and repeats it once where a browser does. */
  async #exchange(request: ExposedRequest, signal: AbortSignal): Promise<Answer> {
    const answer = await this.#request(request, signal, true).catch((error: unknown) => {
      // The server closed an idle connection while the request was sent.
      if (error instanceof StaleConnectionError) return undefined;
      throw error;
    });
    if (answer?.status !== MISDIRECTED && answer) return answer;
    answer?.stream.destroy();
    return this.#request(request, signal, false);
  }

  close(): void {
    for (const agent of Object.values(this.#agents)) agent.destroy();
    this.#http2.close();
  }

  /** Sends from now on what this browser would. */
  resemble({ product, userAgent }: ResultOf<'Browser.getVersion'>): void {
    this.userAgent = userAgent;
    this.isShell = product?.startsWith('HeadlessChrome/') ?? false;
    // The headless shell names no language.
    this.language = this.isShell ? undefined : LANGUAGE;
  }

  /** The headers that Chromium adds to the handshake of a WebSocket after the page. No body follows that could be encoded. */
  handshakeHeaders(url: URL): Record<string, string> {
    const language = this.language === undefined ? undefined : { 'accept-language': this.language };
    return { 'accept-encoding': encodingsFor(url, ['br', 'zstd']), ...language };
  }

  async #request(request: ExposedRequest, signal: AbortSignal, mayReuse: boolean): Promise<Answer> {
    const url = withoutUser(request.url);
    const route = { ...routeTo(url), rejectUnauthorized: !this.acceptsInsecureCerts };
    const kept = Object.entries(request.headers).filter(([name]) => !HOP_BY_HOP.test(name));
    const has = (name: string) => kept.some(([one]) => one.toLowerCase() === name);
    const length = request.body?.length ?? (NAMING_NO_BODY.test(request.method) ? 0 : undefined);
    const headers: Record<string, string> = {
      ...(!has('accept-encoding') && {
        'Accept-Encoding': has('range') ? 'identity' : encodingsFor(url),
      }),
      ...(this.language !== undefined && !has('accept-language') && { 'Accept-Language': this.language }),
      ...Object.fromEntries(kept.map(([name, value]) => [name, asBytes(value)])),
      ...(length !== undefined && { 'Content-Length': String(length) }),
    };
    if (url.protocol === 'https:') {
      const session = await raceAbort(this.#http2.of(url, route), signal);
      if (session && !session.destroyed) return requestOver(session, { ...request, headers }, signal);
    }
    const options: RequestOptions & https.RequestOptions = {
      method: request.method,
      path: pathOf(url),
      headers,
      // Other idle connections may be closed, too.
      agent: mayReuse && this.#agents[url.protocol as 'http:'],
      maxHeaderSize: LARGEST_HEADERS,
      // A browser reads what some servers of developers send: lines that end with LF only, and folded headers.
      insecureHTTPParser: true,
      signal,
      ...route,
    };
    return new Promise((resolve, reject) => {
      const sent = (url.protocol === 'https:' ? https : http).request(url, options);
      // A header that follows many others can be a policy of the page. Their bytes are limited.
      sent.maxHeadersCount = 0;
      // Node writes it in capitals.
      sent.method = request.method;
      // Without this header, Node names a length of any method but a few.
      sent.useChunkedEncodingByDefault = false;
      sent.once('response', (stream) => {
        const { statusCode, statusMessage, rawHeaders, headers: read } = stream;
        const all = { Host: url.host, Connection: 'keep-alive', ...headers };
        const reason = Buffer.from(statusMessage ?? '', 'latin1').toString();
        resolve({ status: statusCode!, reason, rawHeaders, read, stream, sent: all });
      });
      sent.once('error', (error: NodeJS.ErrnoException) => {
        // A browser repeats a request of any method then.
        const isStale = sent.reusedSocket && /^(ECONNRESET|EPIPE)$/.test(error.code ?? '');
        reject(isStale ? new StaleConnectionError() : error);
      });
      // Node reports nothing else of a response that changes the protocol.
      sent.once('close', () => reject(new Error(NO_RESPONSE)));
      sent.end(request.body);
    });
  }
}

class StaleConnectionError extends Error {}

async function requestOver(
  session: ClientHttp2Session,
  { url, method, headers, body }: ExposedRequest,
  signal: AbortSignal,
): Promise<Answer> {
  const server = withoutUser(url);
  const pseudo = { ':method': method, ':path': pathOf(server), ':authority': server.host };
  const stream = session.request({ ...pseudo, ...headers }, { endStream: body === undefined, signal });
  return new Promise((resolve, reject) => {
    stream.once('response', (read) => {
      const named = Object.entries(read).filter(([name]) => !name.startsWith(':'));
      const rawHeaders = named.flatMap(([name, value]) => [value ?? []].flat().flatMap((one) => [name, one]));
      resolve({ status: read[':status']!, reason: '', rawHeaders, read, stream, sent: headers });
    });
    stream.once('error', (error: NodeJS.ErrnoException) => {
      // The server ended the connection before it read the request.
      const isStale = /^ERR_HTTP2_(GOAWAY_SESSION|INVALID_SESSION)$/.test(error.code ?? '');
      reject(isStale ? new StaleConnectionError() : error);
    });
    // A server can cancel a stream without an error.
    stream.once('close', () => reject(new Error(NO_RESPONSE)));
    if (body !== undefined) stream.end(body);
  });
}

/** Returns a URL without the name and the password, which no server receives unasked. */
export function withoutUser(url: ExposedUrl): URL {
  return Object.assign(new URL(url), { username: '', password: '' });
}

/** Returns what a request names of a URL without a user: also a `?` that nothing follows. */
export function pathOf({ href, origin }: URL): string {
  return href.slice(origin.length).split('#', 1)[0]!;
}

/** Returns the header with the name and the password of a URL. Undefined if there are none, or the server has not asked for them. */
function authorizationFor(
  { url, headers }: ExposedRequest,
  { status, read }: Pick<Answer, 'status' | 'read'>,
): string | undefined {
  const { username, password } = new URL(url);
  const hasOwn = Object.keys(headers).some((name) => name.toLowerCase() === 'authorization');
  const isAsked = status === 401 && /(?:^|,)\s*basic\b/i.test(read['www-authenticate'] ?? '');
  if (!isAsked || hasOwn || (username === '' && password === '')) return undefined;
  return `Basic ${Buffer.from(`${unescaped(username)}:${unescaped(password)}`).toString('base64')}`;
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** A browser refuses a response that has several different headers of one of these names: a server did not write them all. */
const SINGLE = ['location', 'content-disposition'];
const REDIRECT = new Set([301, 302, 303, 307, 308]);
const PROXY_AUTHENTICATION = 407;

/** Returns why a browser refuses a response. */
function faultOf(
  { status, rawHeaders }: Pick<Answer, 'status' | 'rawHeaders'>,
  url: ExposedUrl,
): string | undefined {
  if (rawHeaders.some((one) => one.includes('\0'))) return 'A header contains a null byte.';
  if (status === PROXY_AUTHENTICATION) return 'The server asks for the authentication of a proxy.';
  const valuesOf = (name: string) =>
    new Set(
      rawHeaders.filter((_value, index) => index % 2 === 1 && rawHeaders[index - 1]!.toLowerCase() === name),
    );
  const several = SINGLE.find((name) => valuesOf(name).size > 1);
  if (several !== undefined) return `The response has two different headers ${several}.`;
  const [location] = valuesOf('location');
  const isLost = REDIRECT.has(status) && location !== undefined && !URL.canParse(location, url);
  return isLost ? 'The redirect has an invalid location.' : undefined;
}

function readAnswer(
  { status, reason, rawHeaders, read, stream, sent }: Answer,
  { method, url }: ExposedRequest,
): Received {
  stream.on('error', () => {});
  const fault = faultOf({ status, rawHeaders }, url);
  if (fault !== undefined) {
    stream.destroy();
    throw new Error(fault);
  }
  const headers = rawHeaders.flatMap((name, index) =>
    index % 2 === 0 ? [`${name}: ${rawHeaders[index + 1]}`] : [],
  );
  const length = read['content-length'];
  const head = { status, reason, headers, sent, hasLength: length !== undefined };
  if (method === 'HEAD' || BODILESS.has(status)) {
    // A server can send one nevertheless.
    if (status === RESET_CONTENT) stream.destroy();
    else stream.resume();
    return { ...head, length: undefined, stream: undefined };
  }
  const decoded = decode(stream, read['content-encoding'] ?? '');
  decoded.on('error', () => {});
  const isNamed = length !== undefined && decoded === stream;
  return { ...head, length: isNamed ? Number(length) : undefined, stream: decoded };
}

/** A header of CDP is decoded as UTF-8; one of Node has a character for each byte. */
export function asBytes(value: string): string {
  return Buffer.from(value).toString('latin1');
}

/** A browser accepts the newer encodings only where no old proxy can be between it and the server. */
function encodingsFor(url: URL, newer = ['br', 'zstd'].filter((name) => name in DECODERS)): string {
  return ['gzip', 'deflate', ...(isTrustworthy(url) ? newer : [])].join(', ');
}

/** Accept a body that was cut. */
const CUT = { finishFlush: zlib.constants.Z_SYNC_FLUSH };

/** Node has it from 22.15. */
const { createZstdDecompress } = zlib as { createZstdDecompress?: () => Duplex };

const DECODERS: Readonly<Record<string, () => Duplex>> = {
  gzip: () => zlib.createUnzip(CUT),
  'x-gzip': () => zlib.createUnzip(CUT),
  deflate: () => Duplex.from(inflate),
  br: () => zlib.createBrotliDecompress({ finishFlush: zlib.constants.BROTLI_OPERATION_FLUSH }),
  ...(createZstdDecompress && { zstd: () => createZstdDecompress() }),
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

/** Undoes the encodings of a body. Leaves an encoding that was not requested, as a browser does. */
function decode(stream: Readable, encoding: string): Readable {
  const names = encoding.toLowerCase().match(/[^\s,]+/g) ?? [];
  const decoders = names.filter((name) => name !== 'identity').map((name) => DECODERS[name]);
  if (decoders.includes(undefined)) return stream;
  if (decoders.length > MOST_ENCODINGS) {
    stream.destroy();
    throw new Error(`The body has more than ${MOST_ENCODINGS} encodings.`);
  }
  // An error reaches the last stream.
  return decoders.toReversed().reduce((body, create) => pipeline(body, create!(), () => {}), stream);
}

/** How a host is reached: options of Node's connections. */
interface Route {
  readonly lookup?: LookupFunction;
  /**
   * Milliseconds until Node ends the attempt at one address of a host for the next address. After its usual 250, a process that is busy
   * for a moment would end an attempt that has succeeded.
   */
  readonly autoSelectFamilyAttemptTimeout: number;
}

export function routeTo({ hostname }: URL): Route {
  // No address of this machine lets a client wait.
  if (isLocalhost(hostname)) return { lookup: lookupLocalhost, autoSelectFamilyAttemptTimeout: 10_000 };
  return { autoSelectFamilyAttemptTimeout: 2000 };
}

/** A browser resolves these names by itself. */
function isLocalhost(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost');
}

/** Whether nobody can read, or change, what a server sends. */
export function isTrustworthy({ protocol, hostname }: URL): boolean {
  return protocol === 'https:' || isLoopback(hostname) || isLocalhost(hostname);
}

/** A browser resolves it to both addresses, and not every system does. */
const lookupLocalhost: LookupFunction = (_hostname, { all }, callback) => {
  const addresses = [
    { address: '127.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ];
  if (all) return callback(null, addresses);
  callback(null, '127.0.0.1', 4);
};

type TlsRoute = Route & { readonly rejectUnauthorized: boolean };

/** The connections to servers that speak HTTP/2. Over TLS, a browser speaks it wherever the server does. */
export class Http2Sessions {
  readonly #byOrigin = new Map<string, Promise<ClientHttp2Session | undefined>>();
  /** Those of servers that have not answered. */
  readonly #opening = new Set<TLSSocket>();

  /** Resolves to undefined if the server speaks only HTTP/1.1. Rejects with the error of the connection. */
  of(url: URL, how: TlsRoute): Promise<ClientHttp2Session | undefined> {
    const { origin } = url;
    const known = this.#byOrigin.get(origin);
    if (known) return known;
    const forget = () => this.#byOrigin.delete(origin);
    const opening = this.#start(url, how, forget);
    this.#byOrigin.set(origin, opening);
    opening.catch(forget);
    return opening;
  }

  close(): void {
    for (const one of this.#byOrigin.values()) one.then((session) => session?.destroy()).catch(() => {});
    this.#byOrigin.clear();
    for (const socket of this.#opening) socket.destroy(new Error('The lease has ended.'));
  }

  async #start(url: URL, how: TlsRoute, onEnd: () => void): Promise<ClientHttp2Session | undefined> {
    const host = url.hostname.replaceAll(/^\[|\]$/g, '');
    const socket = tls.connect({
      host,
      port: Number(url.port || 443),
      ...(isIP(host) === 0 && { servername: host }),
      ALPNProtocols: ['h2', 'http/1.1'],
      ...how,
    });
    this.#opening.add(socket);
    await new Promise((resolve, reject) => {
      socket.once('secureConnect', resolve);
      socket.once('error', reject);
    }).finally(() => this.#opening.delete(socket));
    if (socket.alpnProtocol !== 'h2') {
      socket.destroy();
      return undefined;
    }
    const session = http2.connect(url.origin, {
      createConnection: () => socket,
      maxHeaderListPairs: MOST_PAIRS,
      settings: { maxHeaderListSize: LARGEST_HEADERS },
    });
    // The stream of a request reports its error.
    session.on('error', () => {});
    session.once('goaway', onEnd);
    session.once('close', onEnd);
    return session;
  }
}

/** The value of a header. @param name In small letters. */
export function valueOf(name: string, headers: readonly string[]): string | undefined {
  const found = headers.find((one) => one.toLowerCase().startsWith(`${name}:`));
  return found?.slice(name.length + 1).trim();
}
