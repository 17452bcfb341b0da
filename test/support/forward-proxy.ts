import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect, type AddressInfo, type Socket } from 'node:net';

export interface ProxyOptions {
  /** The port of 127.0.0.1 for each host name. No other name is resolved. */
  readonly hosts: Readonly<Record<string, string | number>>;
  /** User name and password that a client needs, with a colon between them. */
  readonly credentials?: string;
  /** Milliseconds without a byte after which a tunnel is cut. */
  readonly idleTimeout?: number;
  /** Of a proxy at an https address. */
  readonly certificate?: { readonly key: string; readonly cert: string } | undefined;
}

/** An HTTP proxy on loopback, for host names that only it resolves. */
export class ForwardProxy implements AsyncDisposable {
  /** Host and port of each tunnel that was requested. */
  readonly requested: string[] = [];
  readonly #options: ProxyOptions;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #port = 0;

  static async start(options: ProxyOptions): Promise<ForwardProxy> {
    const proxy = new ForwardProxy(options);
    await proxy.listen();
    return proxy;
  }

  private constructor(options: ProxyOptions) {
    this.#options = options;
  }

  /** Its address, with the credentials that it accepts. */
  get url(): string {
    const [user, password] = this.#options.credentials?.split(':').map(encodeURIComponent) ?? [];
    const scheme = this.#options.certificate ? 'https' : 'http';
    return `${scheme}://${user === undefined ? '' : `${user}:${password}@`}127.0.0.1:${this.#port}`;
  }

  /** Listens, again at the same port after `die`. */
  async listen(): Promise<void> {
    const { certificate } = this.#options;
    this.#server = certificate ? createTlsServer(certificate) : createServer();
    this.#server.on('connect', (request, client: Socket) => {
      this.#open(request.url!, request.headers['proxy-authorization'], client);
    });
    await once(this.#server.listen(this.#port, '127.0.0.1'), 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  /** Ends, with all tunnels. */
  async die(): Promise<void> {
    const closed = this.#server?.close() && once(this.#server, 'close');
    this.#server?.closeAllConnections();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
    this.#server = undefined;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.die();
  }

  #open(target: string, authorization: string | undefined, client: Socket): void {
    const { hosts, credentials, idleTimeout } = this.#options;
    this.#add(client);
    this.requested.push(target);
    const expected = credentials && `Basic ${Buffer.from(credentials).toString('base64')}`;
    if (authorization !== expected) return answer(client, '407 Proxy Authentication Required');
    const port = hosts[target.replace(/:\d+$/, '')];
    if (port === undefined) return answer(client, '403 Forbidden');
    const server = this.#add(connect(Number(port), '127.0.0.1'));
    client.write('HTTP/1.1 200 Connection established\r\n\r\n');
    client.pipe(server).pipe(client);
    client.on('close', () => server.destroy());
    server.on('close', () => client.destroy());
    if (idleTimeout !== undefined) client.setTimeout(idleTimeout, () => client.destroy());
  }

  #add(socket: Socket): Socket {
    this.#sockets.add(socket.on('error', () => {}));
    return socket.once('close', () => this.#sockets.delete(socket));
  }
}

function answer(client: Socket, status: string): void {
  client.end(`HTTP/1.1 ${status}\r\ncontent-length: 0\r\n\r\n`);
}
