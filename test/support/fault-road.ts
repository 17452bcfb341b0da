import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { WebSocket, WebSocketServer, type RawData } from 'ws';
import { JWT } from './fake-service.js';
import { answerOwnCommand } from './played-browser.js';

/** Handles a WebSocket upgrade whose request head has arrived. `join` connects it to the browser. */
export type Upgrade = (socket: Socket, facts: { key: string; join: () => void }) => void;

/** A way to lose an open connection. */
export type Loss = 'reset' | 'end' | 'silence';

const ON_BOTH_SIDES = { perMessageDeflate: false, skipUTF8Validation: true, autoPong: false } as const;

/**
 * The network between a client and its browser: a WebSocket proxy that causes faults on demand. It can answer upgrades,
 * count messages, and insert bytes between two frames. A URL that `to` did not return has a simulated browser.
 */
export class FaultRoad implements AsyncDisposable {
  /** Number of connections so far. */
  dialled = 0;
  /** Number of messages to the browser, and from it. */
  commands = 0;
  messages = 0;
  /** Called with the number of messages so far, after each one from the browser. */
  onMessage: (messages: number) => void = () => {};
  readonly #server = createServer();
  readonly #acceptor = new WebSocketServer({ ...ON_BOTH_SIDES, noServer: true });
  readonly #targets = new Map<string, string>();
  readonly #connections = new Set<FaultConnection>();
  readonly #sockets = new Set<Socket>();
  #upgrades: Upgrade[] = [join];

  static async start(): Promise<FaultRoad> {
    const road = new FaultRoad();
    road.#server.on('connection', (socket) => {
      road.dialled++;
      road.#sockets.add(socket.on('error', () => {}));
      socket.once('close', () => road.#sockets.delete(socket));
    });
    road.#server.on('upgrade', (request, socket: Socket, head) => {
      const upgrade = road.#upgrades.length > 1 ? road.#upgrades.shift()! : road.#upgrades[0]!;
      const key = request.headers['sec-websocket-key'] ?? '';
      upgrade(socket, { key, join: () => road.#join(request, socket, head) });
    });
    road.#server.listen(0, '127.0.0.1');
    await once(road.#server, 'listening');
    return road;
  }

  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Returns a URL that leads through this proxy to the target. Its jwt is the canary. */
  to(target: string): string {
    const path = `/road-${this.#targets.size}`;
    this.#targets.set(path, target);
    return `ws://${this.host}${path}?jwt=${JWT}`;
  }

  /** Sets how the next upgrades are handled, one each. The last one repeats. */
  play(...upgrades: Upgrade[]): void {
    this.#upgrades = upgrades;
  }

  /** Breaks all open connections, or those that were opened after the first ones. */
  lose(loss: Loss, { but = 0 } = {}): void {
    for (const connection of [...this.#connections].slice(but)) connection.lose(loss);
  }

  /** Sends these bytes to the client, between two frames of the browser, and nothing after them. */
  inject(bytes: Buffer): void {
    for (const connection of this.#connections) connection.inject(bytes);
  }

  /** Closes the WebSockets with a close frame, as the service does. */
  close(code: number, reason = ''): void {
    const text = Buffer.from(reason);
    this.inject(Buffer.from([0x88, 2 + text.length, code >> 8, code & 0xff, ...text]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server.close(), 'close');
    for (const connection of this.#connections) connection.browser?.terminate();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #join(request: IncomingMessage, socket: Socket, head: Buffer): void {
    const target = this.#targets.get(request.url!.split('?')[0]!);
    const browser = target === undefined ? undefined : new WebSocket(target, ON_BOTH_SIDES);
    const open = () =>
      this.#acceptor.handleUpgrade(request, socket, head, (client) => {
        const connection = new FaultConnection(this, { client, socket, browser });
        this.#connections.add(connection);
        client.once('close', () => this.#connections.delete(connection));
      });
    if (!browser) return open();
    browser.once('open', open).on('error', () => socket.destroy());
    browser.on('unexpected-response', (_request, { statusCode }) =>
      refuse(statusCode!)(socket, { key: '', join: () => {} }),
    );
  }
}

/** One connection with both ends. */
class FaultConnection {
  readonly browser: WebSocket | undefined;
  readonly #socket: Socket;
  readonly #ends: WebSocket[];
  /** True if nothing is forwarded any more. */
  #isBroken = false;
  /** True if the network is gone, too. */
  #isLost = false;

  constructor(
    road: FaultRoad,
    { client, socket, browser }: { client: WebSocket; socket: Socket; browser: WebSocket | undefined },
  ) {
    this.browser = browser;
    this.#socket = socket;
    this.#ends = browser ? [client, browser] : [client];
    for (const end of this.#ends)
      end.on('error', () => {}).on('ping', (data) => this.#isBroken || end.pong(data));
    client.on('message', (...message) => {
      if (!this.#isLost) road.commands++;
      this.#forward(browser, ...message);
      const answer = browser ? undefined : answerOwnCommand(String(message[0]));
      if (answer !== undefined && !this.#isBroken) client.send(answer);
    });
    client.on('close', (...ending) => this.#end(browser, ...ending));
    browser?.on('message', (...message) => {
      if (!this.#forward(client, ...message)) return;
      road.messages++;
      road.onMessage(road.messages);
    });
    browser?.on('close', (...ending) => this.#end(client, ...ending));
  }

  /** `silence` keeps both sockets open, forwards nothing, and answers nothing. */
  lose(loss: Loss): void {
    this.#isBroken = true;
    this.#isLost = true;
    if (loss === 'reset') this.#socket.resetAndDestroy();
    else if (loss === 'end') this.#socket.end();
    else for (const end of this.#ends) end.pause();
    if (loss !== 'silence') this.browser?.terminate();
  }

  inject(bytes: Buffer): void {
    this.#isBroken = true;
    this.#socket.write(bytes);
  }

  #forward(to: WebSocket | undefined, data: RawData, isBinary: boolean): boolean {
    if (this.#isBroken || to?.readyState !== WebSocket.OPEN) return false;
    to.send(data, { binary: isBinary });
    return true;
  }

  #end(to: WebSocket | undefined, code: number, reason: Buffer): void {
    // Codes that stand for an end without a close frame.
    if (code === 1005 || code === 1006) to?.terminate();
    else to?.close(code, reason);
  }
}

/** Connects to the browser. */
export const join: Upgrade = (_socket, facts) => facts.join();

/** Never answers, and keeps the socket. */
export const ignore: Upgrade = (socket) => void socket.resume();

/** Accepts the WebSocket, and never sends a message. */
export const accept: Upgrade = (socket, { key }) => {
  const accepted = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: ${accepted}\r\n\r\n`,
  );
  socket.resume();
};

/** Accepts the WebSocket and sends these bytes. */
export function acceptWith(bytes: Buffer): Upgrade {
  return (socket, facts) => {
    accept(socket, facts);
    socket.write(bytes);
  };
}

/** Sends these bytes instead of a response. */
export function answerWith(bytes: string): Upgrade {
  return (socket) => void socket.end(bytes);
}

/** Refuses the upgrade. */
export function refuse(status: number, headers: Record<string, string> = {}): Upgrade {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const body = `no entry for ${JWT}`;
  return answerWith(
    `HTTP/1.1 ${status} No\r\ncontent-length: ${body.length}\r\nconnection: close\r\n${lines.join('')}\r\n${body}`,
  );
}

/** Resets the connection without a response. */
export const resetUpgrade: Upgrade = (socket) => void socket.resetAndDestroy();

/** A complete, unmasked text frame, as a server sends it. */
export function textFrame(text: string): Buffer {
  const payload = Buffer.from(text);
  if (payload.length > 125) throw new Error('The text is too long for a small frame');
  return Buffer.concat([Buffer.from([0x81, payload.length]), payload]);
}

/** Sends the head of a message of this size to a server, which refuses it by its size, and nothing of the message. */
export function sendHead(client: WebSocket, bytes: number): void {
  const head = Buffer.alloc(14);
  head.set([0x81, 0xff]);
  head.writeBigUInt64BE(BigInt(bytes), 2);
  (Reflect.get(client, '_socket') as Socket).write(head);
}
