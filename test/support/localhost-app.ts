import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createSecureServer } from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import { createServer as createTcpServer, type AddressInfo, type Server as TcpServer } from 'node:net';
import { pipeline, Readable } from 'node:stream';
import zlib from 'node:zlib';
import { WebSocketServer } from 'ws';
import { selfSigned } from './self-signed.js';

type Answer = (request: IncomingMessage, response: ServerResponse) => unknown;

const html = (body: string, headers: Record<string, string | string[]> = {}): Answer => {
  return (_request, response) =>
    response.writeHead(200, { 'content-type': 'text/html', ...headers }).end(body);
};
const script = (body: string): Answer => {
  return (_request, response) => response.writeHead(200, { 'content-type': 'text/javascript' }).end(body);
};
const text = (
  body: string | Buffer,
  headers: Record<string, string | string[]> = {},
  status = 200,
): Answer => {
  const length = status === 204 ? {} : { 'content-length': Buffer.byteLength(body) };
  return (_request, response) =>
    response.writeHead(status, { 'content-type': 'text/plain', ...length, ...headers }).end(body);
};
/** Sends bytes as they are. */
const raw = (message: string): Answer => {
  return ({ socket }) => socket.end(Buffer.from(message, 'latin1'));
};

const MEGABYTE = Buffer.alloc(1024 * 1024, 'a megabyte ');
const SENTENCE = 'The same sentence, many times. '.repeat(100);
const PIXEL = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64');

/** Sends a number of megabytes as fast as the client reads them. */
const megabytes = (headers: (count: number) => Record<string, string | number>): Answer => {
  return (request, response) => {
    const { searchParams } = new URL(request.url!, 'http://a');
    const count = Number(searchParams.get('mb'));
    response.writeHead(200, headers(count));
    if (request.method === 'HEAD') return response.end();
    const all = Array.from({ length: count }, () => MEGABYTE);
    return pipeline(Readable.from(all), response, () => {});
  };
};

const ALLOWED = { 'access-control-allow-credentials': 'true' };
const allowed = (request: IncomingMessage) => ({
  ...ALLOWED,
  'access-control-allow-origin': request.headers.origin ?? '*',
  vary: 'origin',
});

/** A silent sound of 20 MB: one channel of one byte, 44,100 times in a second. */
const SOUND = {
  size: 44 + 20 * MEGABYTE.length,
  head() {
    const head = Buffer.from('RIFF____WAVEfmt ________________________data____', 'latin1').subarray(0, 44);
    head.writeUInt32LE(this.size - 8, 4);
    [16, 0x1_00_01, 44_100, 44_100, 0x8_00_01].forEach((value, index) =>
      head.writeUInt32LE(value, 16 + 4 * index),
    );
    head.write('data', 36, 'latin1');
    head.writeUInt32LE(this.size - 44, 40);
    return head;
  },
  *read(from: number, end: number): Iterable<Buffer> {
    if (from < 44) yield this.head().subarray(from, end);
    for (let at = Math.max(from, 44); at < end; at += MEGABYTE.length)
      yield Buffer.alloc(Math.min(MEGABYTE.length, end - at), 0x80);
  },
};
/** Megabytes that the last client of `/flood` has taken. */
let flooded = 0;
/** Responses that wait for `/release`. */
const held = new Set<ServerResponse>();
/** The open streams of events of `/live`. */
const live = new Set<ServerResponse>();

const ANSWERS: Record<string, Answer> = {
  '/': html('<title>app</title><h1>app</h1>'),
  '/text': text('some text'),
  '/redirect': text('', { location: '/redirect2', 'set-cookie': ['first=1', 'second=2; HttpOnly'] }, 302),
  '/redirect2': text('', { location: '/' }, 301),
  '/redirect307': text('', { location: '/echo' }, 307),
  '/slow-redirect': (_request, response) =>
    setTimeout(() => response.writeHead(307, { location: '/echo' }).end(), 300),
  '/redirect303': text('', { location: '/echo' }, 303),
  '/loop': text('', { location: '/loop' }, 302),
  '/echo': async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const type = String(request.headers['content-type']).replace(/boundary=.*/, 'boundary');
    const boundary = /boundary=(.*)/.exec(String(request.headers['content-type']))?.[1];
    const content = boundary ? body.toString('latin1').replaceAll(boundary, 'boundary') : body;
    const hash = createHash('sha256').update(content).digest('hex').slice(0, 16);
    response.writeHead(200, { 'content-type': 'text/html', ...allowed(request) }).end(
      JSON.stringify({
        method: request.method,
        type,
        length: boundary ? 0 : body.length,
        named: request.headers['content-length'],
        hash,
      }),
    );
  },
  '/headers': ({ headers, rawHeaders }, response) => {
    const names = rawHeaders.filter((_name, index) => index % 2 === 0);
    response.end(JSON.stringify({ headers, names }));
  },
  '/cors': (request, response) =>
    response
      .writeHead(request.method === 'OPTIONS' ? 204 : 200, {
        ...allowed(request),
        'access-control-allow-headers': 'x-allowed, content-type',
        'access-control-allow-methods': 'PUT',
        'access-control-expose-headers': 'x-shown',
        'x-shown': 'shown',
        'x-hidden': 'hidden',
      })
      .end(request.method === 'OPTIONS' ? undefined : 'allowed'),
  '/cors-star': text('star', { 'access-control-allow-origin': '*' }),
  '/no-preflight': (request, response) =>
    response.writeHead(200, request.method === 'OPTIONS' ? {} : allowed(request)).end('done'),
  /** With the policy of the query. */
  '/corp': (request, response) =>
    response
      .writeHead(200, { 'cross-origin-resource-policy': decodeURIComponent(request.url!.split('?')[1]!) })
      .end('kept'),
  '/head': megabytes((count) => ({ 'content-length': count * MEGABYTE.length, 'x-head': 'yes' })),
  '/large': megabytes((count) => ({ 'content-length': count * MEGABYTE.length })),
  '/large-chunked': megabytes(() => ({})),
  '/attachment': megabytes((count) => ({
    'content-length': count * MEGABYTE.length,
    'content-disposition': 'attachment; filename="a file.bin"',
  })),
  '/attachment-chunked': megabytes(() => ({ 'content-disposition': 'attachment; filename="chunked.bin"' })),
  '/archive.zip': megabytes(() => ({ 'content-type': 'application/zip' })),
  '/cut-attachment': (_request, response) => {
    response
      .writeHead(200, {
        'content-type': 'application/octet-stream',
        'content-length': 100 * MEGABYTE.length,
        'content-disposition': 'attachment',
      })
      .write(MEGABYTE, () => response.destroy());
  },
  '/downloads': html(
    '<a id=named download="named.bin" href="/large?mb=9">named</a><a id=new target=_blank href="/attachment?mb=65">new</a>',
  ),
  '/flood': async (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/plain' });
    for (let sent = 0; !response.destroyed; flooded = ++sent)
      if (!response.write(MEGABYTE)) await Promise.race([once(response, 'drain'), once(response, 'close')]);
  },
  '/flooded': (_request, response) => response.end(String(flooded)),
  /** Sends a second of sound in a second. */
  '/slow.wav': ({ headers }, response) => {
    const [, from = '0'] = /bytes=(\d+)-/.exec(headers.range ?? '') ?? [];
    response.writeHead(206, {
      'content-type': 'audio/wav',
      'content-length': SOUND.size - Number(from),
      'content-range': `bytes ${from}-${SOUND.size - 1}/${SOUND.size}`,
    });
    const [part] = SOUND.read(Number(from), 44);
    response.write(part ?? '');
    const timer = setInterval(() => response.write(Buffer.alloc(4410, 0x80)), 100);
    response.on('close', () => clearInterval(timer));
  },
  '/slow-named': ({ url }, response) => {
    const status = Number(new URL(url!, 'http://a').searchParams.get('status') ?? 200);
    response.writeHead(status, { 'content-type': 'text/plain', 'content-length': 12 }).write('first ');
    setTimeout(() => response.end('second'), 1500);
  },
  '/sound.wav': ({ headers }, response) => {
    const [, from = '0', to] = /bytes=(\d+)-(\d*)/.exec(headers.range ?? '') ?? [];
    const end = Number(to || SOUND.size - 1) + 1;
    response.writeHead(206, {
      'content-type': 'audio/wav',
      'accept-ranges': 'bytes',
      'content-length': end - Number(from),
      'content-range': `bytes ${from}-${end - 1}/${SOUND.size}`,
    });
    return pipeline(Readable.from(SOUND.read(Number(from), end)), response, () => {});
  },
  '/options': (_request, response) => response.writeHead(204, { allow: 'GET, OPTIONS', dav: '1' }).end(),
  '/range': ({ headers }, response) => {
    const [, from, to] = /bytes=(\d+)-(\d*)/.exec(headers.range ?? '') ?? [];
    if (from === undefined) return response.writeHead(200, { 'accept-ranges': 'bytes' }).end(SENTENCE);
    const part = SENTENCE.slice(Number(from), Number(to || SENTENCE.length - 1) + 1);
    const range = `bytes ${from}-${Number(from) + part.length - 1}/${SENTENCE.length}`;
    return response.writeHead(206, { 'content-range': range, 'content-length': part.length }).end(part);
  },
  '/slow-parts': (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/plain' }).write('first ');
    setTimeout(() => response.end('second'), 2000);
  },
  '/document-parts': (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).write('<p>first</p>');
    setTimeout(() => response.end('<p>second</p>'), 1500);
  },
  /** Reads nothing for some time. */
  '/stuck': (request) => void setTimeout(() => request.resume(), 2500),
  '/event-of-headers': ({ headers }, response) => {
    response.setHeader('content-type', 'text/event-stream');
    response.end(`data: ${JSON.stringify(headers)}\n\n`);
  },
  '/events': ({ headers }, response) => {
    response.writeHead(200, {
      'content-type': 'text/event-stream',
      ...allowed({ headers } as IncomingMessage),
    });
    let count = Number(headers['last-event-id'] ?? 0);
    const send = () => response.write(`id: ${++count}\ndata: event ${count}\n\n`);
    send();
    const timer = setInterval(send, 200);
    response.on('close', () => clearInterval(timer));
  },
  '/live': (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'set-cookie': 'live=1' });
    response.write('retry: 50\n\n');
    live.add(response.on('close', () => live.delete(response)));
  },
  '/send': ({ url }, response) => {
    const query = new URL(url!, 'http://a').searchParams;
    for (const one of live) {
      one.write(query.get('text')!);
      if (query.has('end')) one.end();
    }
    response.end(String(live.size));
  },
  '/public': html('<title>public</title>', { 'content-security-policy': 'treat-as-public-address' }),
  '/never': () => {},
  '/held': (_request, response) => void held.add(response),
  '/release': (_request, response) => {
    for (const one of held) one.end();
    held.clear();
    response.end();
  },
  '/never-ends': (_request, response) =>
    response.writeHead(200, { 'content-type': 'text/plain' }).write('start'),
  '/delayed': (_request, response) => setTimeout(() => response.end('later'), 100),
  '/cached': text('cached', { 'cache-control': 'max-age=600' }),
  '/etag': ({ headers }, response) =>
    headers['if-none-match'] === '"v1"'
      ? response.writeHead(304, { etag: '"v1"' }).end()
      : response
          .writeHead(200, { etag: '"v1"', 'cache-control': 'no-cache', 'content-length': 6 })
          .end('tagged'),
  '/set-cookies': text('set', {
    'set-cookie': [
      'plain=1',
      'http=1; HttpOnly; Path=/',
      'strict=1; SameSite=Strict; Path=/',
      'lax=1; SameSite=Lax; Path=/',
      'none=1; SameSite=None; Secure; Path=/',
      '__Host-h=1; Secure; Path=/',
      '__Secure-s=1; Path=/',
      'path=1; Path=/deep',
      'domain=1; Domain=localhost; Path=/',
      'foreign=1; Domain=example.com',
      'long=1; Max-Age=1000; Path=/',
      'gone=1; Max-Age=0; Path=/',
      'quoted="a b"; Path=/',
      'utf=\u00c3\u00bc; Path=/',
    ],
  }),
  '/set-partitioned': text('set', { 'set-cookie': 'part=1; SameSite=None; Secure; Partitioned; Path=/' }),
  '/cookies': ({ headers }, response) =>
    response
      .writeHead(200, { 'content-type': 'text/javascript', ...allowed({ headers } as IncomingMessage) })
      .end(`globalThis.cookies = ${JSON.stringify(String(headers.cookie))}`),
  '/worker.js': script('onmessage = async ({ data }) => postMessage(await (await fetch(data)).text());'),
  '/shared.js': script(
    'onconnect = ({ ports: [port] }) => fetch("/text").then((r) => r.text()).then((t) => port.postMessage(t));',
  ),
  '/service.js': script(
    `oninstall = () => skipWaiting(); onactivate = (e) => e.waitUntil(clients.claim());
     onfetch = (e) => { const { pathname } = new URL(e.request.url);
       if (pathname === '/mine') e.respondWith(new Response('of the worker'));
       if (pathname === '/text') e.respondWith(fetch(e.request)); };`,
  ),
  '/module.js': script('import { value } from "./imported.js"; globalThis.value = value;'),
  '/imported.js': script('export const value = (await import("./late.js")).value;'),
  '/late.js': script('export const value = "imported";'),
  '/assets': html(
    `<link rel=stylesheet href=/style.css><img src=/pixel.gif><script type=module src=/module.js></script>
     <iframe src=/text></iframe><video src=/text></video><object data=/text></object>`,
  ),
  '/style.css': (_request, response) =>
    response.writeHead(200, { 'content-type': 'text/css' }).end('@import "/more.css"; h1 { color: red }'),
  '/more.css': (_request, response) =>
    response.writeHead(200, { 'content-type': 'text/css' }).end('body { background: url(/pixel.gif?css) }'),
  '/pixel.gif': (_request, response) => response.writeHead(200, { 'content-type': 'image/gif' }).end(PIXEL),
  /** Loads what a document can load, each by a path of its own. */
  '/loads': html(
    `<link rel=stylesheet href=/style.css?l><link rel=manifest href=/manifest.json>
     <link rel=icon href=/pixel.gif?icon><link rel=preload as=font crossorigin href=/font.woff2?p><link rel=modulepreload href=/late.js?m>
     <link rel=prefetch href=/text?prefetch><style>@font-face { font-family: f; src: url(/font.woff2) } p { font-family: f; background: url(/pixel.gif?b) }</style>
     <p>text</p><img src=/pixel.gif?i><img crossorigin src=/pixel.gif?c><img crossorigin=use-credentials src=/pixel.gif?u><script src=/late.js?s></script>
     <script type=module src=/module.js></script><iframe src=/text?f></iframe><object data=/pixel.gif?o></object><embed src=/pixel.gif?e>
     <video src=/sound.wav?v preload=metadata></video><audio src=/sound.wav?a crossorigin preload=metadata></audio><video poster=/pixel.gif?poster></video>
     <track src=/text?t><picture><source srcset=/pixel.gif?source><img></picture><svg><image href=/pixel.gif?svg /></svg>`,
    { 'set-cookie': ['a=1', 'b=2; HttpOnly'] },
  ),
  '/manifest.json': (_request, response) =>
    response.writeHead(200, { 'content-type': 'application/manifest+json' }).end('{"name":"app"}'),
  '/font.woff2': text('no font', { 'content-type': 'font/woff2' }),
  '/favicon.ico': (_request, response) => response.writeHead(404).end(),
  '/slow-parts-short': (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/plain' }).write('first ');
    setTimeout(() => response.end('second'), 700);
  },
  /** The bytes of the query. */
  '/raw': ({ url, socket }) => {
    const text = new URL(url!, 'http://a').searchParams.get('text') ?? '';
    socket.end(Buffer.from(`HTTP/1.1 ${text}`.replaceAll('\n', '\r\n'), 'latin1'));
  },
  /** With the type, the body and the headers of the query. */
  '/any': ({ url }, response) => {
    const { searchParams } = new URL(url!, 'http://a');
    const named = searchParams.getAll('header').map((one) => one.split(': ') as [string, string]);
    response.setHeader('content-type', searchParams.get('type') ?? 'text/html');
    for (const [name, value] of named) response.appendHeader(name, value);
    response.end(searchParams.get('body') ?? '<title>any</title>');
  },
  '/gzip': (_request, response) => encoded(response, 'gzip', zlib.gzipSync(SENTENCE)),
  '/deflate': (_request, response) => encoded(response, 'deflate', zlib.deflateRawSync(SENTENCE)),
  '/br': (_request, response) => encoded(response, 'br', zlib.brotliCompressSync(SENTENCE)),
  '/zstd': (request, response) => {
    if (!String(request.headers['accept-encoding']).includes('zstd')) return response.end(SENTENCE);
    // A frame of one raw block, so that each version of Node can write it.
    const block = Buffer.from(SENTENCE.slice(0, 200));
    const head = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x20, block.length]);
    const size = (block.length << 3) | 1;
    return encoded(
      response,
      'zstd',
      Buffer.concat([head, Buffer.from([size & 255, (size >> 8) & 255, size >> 16]), block]),
    );
  },
  '/basic': ({ headers }, response) =>
    headers.authorization === `Basic ${Buffer.from('user:secret').toString('base64')}`
      ? response.end('welcome')
      : response.writeHead(401, { 'www-authenticate': 'Basic realm="app"' }).end('who are you?'),
  '/early': (_request, response) => {
    response.writeEarlyHints({ link: '</style.css>; rel=preload; as=style' });
    setTimeout(
      () => response.writeHead(200, { 'content-type': 'text/html' }).end('<title>early</title>'),
      50,
    );
  },
  '/204': (_request, response) => response.writeHead(204, { 'x-a': 'b' }).end(),
  '/404': text('not there', {}, 404),
  '/499': raw('HTTP/1.1 499 \r\nContent-Length: 2\r\n\r\nok'),
  '/phrase': raw('HTTP/1.1 200 Fine Indeed\r\nContent-Length: 2\r\n\r\nok'),
  '/no-phrase': raw('HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok'),
  '/bytes-header': raw(
    'HTTP/1.1 200 OK\r\nX-Raw: \xc3\xbc\xff\r\nX-Two: a\r\nX-Two: b\r\nContent-Length: 2\r\n\r\nok',
  ),
  '/http10': raw('HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nuntil the end'),
  '/empty': ({ socket }) => socket.end(),
  '/reset': ({ socket }) => socket.resetAndDestroy(),
  '/truncated': raw('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort'),
  '/truncated-page': raw(
    'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100\r\n\r\n<title>short</title>',
  ),
  '/broken-gzip': (_request, response) => encoded(response, 'gzip', Buffer.from('this is no gzip')),
  '/garbage': raw('this is no HTTP\r\n\r\n'),
  '/charset': text(Buffer.from('f\xfcr', 'latin1'), { 'content-type': 'text/plain; charset=iso-8859-1' }),
  '/csp': html('<script>globalThis.ran = true</script>', { 'content-security-policy': "script-src 'none'" }),
  '/many-headers': raw(
    `HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n${'X-Many: 1\r\n'.repeat(3000)}Content-Security-Policy: script-src 'none'\r\n\r\n<script>ran = 1</script>`,
  ),
  '/framed': html('<iframe src=/deny></iframe>'),
  '/deny': html('denied', { 'x-frame-options': 'DENY' }),
  '/isolated': html('<title>isolated</title>', {
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-embedder-policy': 'require-corp',
  }),
  '/refresh': html('<meta http-equiv=refresh content="0;url=/text">'),
  '/link-header': html('linked', { link: '</style.css>; rel=preload; as=style' }),
  '/prefetch': html('<link rel=prefetch href=/text?prefetched>'),
  '/forms': html(
    `<form id=url method=post action=/echo><input name=a value="ü &"><button>send</button></form>
     <form id=file method=post enctype=multipart/form-data action=/echo><input type=file name=f multiple><button>send</button></form>
     <form id=get action=/text><input name=q value="1 2"><button>send</button></form>`,
  ),
};

function encoded(response: ServerResponse, name: string, body: Buffer): void {
  response.writeHead(200, { 'content-encoding': name, 'content-length': body.length }).end(body);
}

/** An app on this machine, with servers of several kinds. Each answers the same paths. */
export class LocalhostApp implements AsyncDisposable {
  /** What arrived, in order, without what browsers request by themselves. */
  log: string[] = [];
  /** The headers of each request, also of those of browsers themselves: the kind and the path, and each header in small letters. */
  headers: [request: string, headers: string[]][] = [];
  readonly #servers: (Server | TcpServer)[] = [];

  static async start(): Promise<LocalhostApp> {
    const app = new LocalhostApp();
    const certificate = selfSigned();
    await app.#listen(app.#withSockets(createServer(app.#answer)), '127.0.0.1');
    await app.#listen(createServer(app.#answer), '::1');
    await app.#listen(createHttpsServer(certificate, app.#answer), '127.0.0.1');
    await app.#listen(
      createSecureServer({ ...certificate, allowHTTP1: false }, app.#answer as never),
      '127.0.0.1',
    );
    await app.#listen(
      createTcpServer((socket) => socket.destroy()),
      '127.0.0.1',
    );
    return app;
  }

  /** The origins of its servers: plain, on `::1` only, with TLS, with HTTP/2 only, and one that closes each connection. */
  get origins(): { http: string; v6: string; https: string; http2: string; closing: string } {
    const [http, v6, https, http2, closing] = this.#servers.map(
      (server) => `localhost:${(server.address() as AddressInfo).port}`,
    );
    return {
      http: `http://${http}`,
      v6: `http://${v6}`,
      https: `https://${https}`,
      http2: `https://${http2}`,
      closing: `http://${closing}`,
    };
  }

  async #listen(server: Server | TcpServer, host: string): Promise<void> {
    server.on('connection', (socket) => socket.on('error', () => {}));
    await once(server.listen(0, host), 'listening');
    this.#servers.push(server);
  }

  readonly #answer = (request: IncomingMessage, response: ServerResponse): void => {
    const { method, url = '' } = request;
    // Of this load: a request can end during the next one.
    const { log } = this;
    const { pathname } = new URL(url, 'http://a');
    this.#note(request);
    if (pathname !== '/favicon.ico') log.push(`${method} ${url}`);
    response.on('close', () => {
      if (!response.writableFinished) log.push(`aborted ${url}`);
    });
    const answer = ANSWERS[pathname] ?? text('nothing', {}, 404);
    void answer(request, response);
  };

  #note({ method, url, rawHeaders }: IncomingMessage): void {
    const each = rawHeaders.flatMap((name, index) =>
      index % 2 === 0 ? [`${name.toLowerCase()}: ${rawHeaders[index + 1]}`] : [],
    );
    this.headers.push([`${method} ${url}`, each]);
  }

  #withSockets(server: Server): Server {
    const sockets = new WebSocketServer({
      noServer: true,
      maxPayload: 8 * 1024 * 1024,
      handleProtocols: (offered) => (offered.has('second') ? 'second' : false),
    });
    sockets.on('headers', (headers, { url }) => {
      for (const one of new URL(url!, 'http://a').searchParams.getAll('set'))
        headers.push(`Set-Cookie: ${one}`);
    });
    server.on('upgrade', (request, socket, head) => {
      const { url = '', headers } = request;
      const { origin, cookie, 'user-agent': agent, 'accept-language': language, 'x-extra': extra } = headers;
      const seen = { origin, cookie, agent, language, extra, protocols: headers['sec-websocket-protocol'] };
      this.log.push(`upgrade ${url} ${JSON.stringify(seen)}`);
      this.#note(request);
      if (url.startsWith('/refused'))
        return void socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n');
      sockets.handleUpgrade(request, socket, head, (websocket) => {
        websocket.on('close', (code, reason) => this.log.push(`closed ${url} ${code} ${String(reason)}`));
        websocket.on('message', (data, isBinary) => {
          const message = String(data).slice(0, 20);
          if (message === 'close me') websocket.close(4321, 'as requested');
          else if (message === 'cut me') websocket.terminate();
          else websocket.send(data, { binary: isBinary });
        });
        if (url.startsWith('/greets')) websocket.send('hello');
      });
    });
    return server;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.#servers) {
      if ('closeAllConnections' in server) server.closeAllConnections();
      server.close();
    }
  }
}
