import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { JWT } from './fake-service.js';
import { FrameCounter } from './frame-counter.js';

/** Handles a WebSocket upgrade whose request head has arrived. `join` connects it to the browser. */
export type Upgrade = (socket: Socket, facts: { key: string; join: () => void }) => void;

/** A way to lose an open connection. */
export type Loss = 'reset' | 'end' | 'silence';

/**
 * The network between a client and its browser: a TCP proxy that causes faults on demand. It can answer upgrades, count
 * messages, and insert a WebSocket frame.
 */
export class FaultRoad implements AsyncDisposable {
  /** Number of connections so far. */
  dialled = 0;
  /** Number of messages to the browser, and from it. */
  commands = 0;
  messages = 0;
  /** Called with the number of messages so far, after each one from the browser. */
  onMessage: (messages: number) => void = () => {};
  readonly #server = createServer({ allowHalfOpen: true }, (socket) => this.#accept(socket));
  readonly #targets = new Map<string, URL>();
  readonly #lanes = new Set<Lane>();
  readonly #sockets = new Set<Socket>();
  #upgrades: Upgrade[] = [join];

  static async start(): Promise<FaultRoad> {
    const road = new FaultRoad();
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
    this.#targets.set(path, new URL(target));
    return `ws://${this.host}${path}?jwt=${JWT}`;
  }

  /** Sets how the next upgrades are handled, one each. The last one repeats. */
  play(...upgrades: Upgrade[]): void {
    this.#upgrades = upgrades;
  }

  /** Breaks all open connections. */
  lose(loss: Loss): void {
    for (const lane of this.#lanes) lane.lose(loss);
  }

  /** Sends these bytes to the client, between two frames of the browser. */
  inject(bytes: Buffer): void {
    for (const lane of this.#lanes) lane.inject(bytes);
  }

  /** Closes the WebSockets with a close frame, as the service does. */
  close(code: number, reason = ''): void {
    const text = Buffer.from(reason);
    this.inject(Buffer.from([0x88, 2 + text.length, code >> 8, code & 0xff, ...text]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server.close(), 'close');
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #accept(socket: Socket): void {
    this.dialled++;
    this.#keep(socket);
    let head = '';
    const read = (chunk: Buffer) => {
      head += chunk.toString('latin1');
      if (!head.includes('\r\n\r\n')) return;
      socket.off('data', read);
      const key = /^sec-websocket-key: *(.*)\r$/im.exec(head)?.[1] ?? '';
      const upgrade = this.#upgrades.length > 1 ? this.#upgrades.shift()! : this.#upgrades[0]!;
      upgrade(socket, { key, join: () => this.#join(socket, head) });
    };
    socket.on('data', read);
  }

  #join(client: Socket, head: string): void {
    const path = /^GET ([^ ?]+)/.exec(head)![1]!;
    const { hostname, port, host, pathname, search } = this.#targets.get(path)!;
    const browser = connect(Number(port), hostname);
    this.#keep(browser);
    browser.write(
      head.replace(/^GET \S+/, `GET ${pathname}${search}`).replace(/^host: .*\r$/im, `Host: ${host}\r`),
      'latin1',
    );
    const lane = new Lane(client, browser, {
      onCommands: (count) => (this.commands += count),
      onMessage: () => this.onMessage(++this.messages),
    });
    this.#lanes.add(lane);
    browser.once('close', () => this.#lanes.delete(lane));
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => this.#sockets.delete(socket));
  }
}

/** One connection with both ends. */
class Lane {
  readonly #client: Socket;
  readonly #browser: Socket;
  readonly #down = new FrameCounter();
  #isUpgraded = false;
  #isSilent = false;
  #injected: Buffer | undefined;

  constructor(
    client: Socket,
    browser: Socket,
    { onCommands, onMessage }: { onCommands: (count: number) => void; onMessage: () => void },
  ) {
    this.#client = client;
    this.#browser = browser;
    const up = new FrameCounter();
    client.on('data', (chunk) => {
      if (this.#isSilent) return;
      const before = up.messages;
      up.push(chunk);
      onCommands(up.messages - before);
      if (this.#injected === undefined) browser.write(chunk);
    });
    browser.on('data', (chunk) => this.#pass(chunk, onMessage));
    client.on('end', () => this.#isSilent || browser.end());
    browser.on('end', () => this.#isSilent || client.end());
    client.on('close', () => this.#isSilent || browser.destroy());
    browser.on('close', () => this.#isSilent || client.destroySoon());
  }

  /** `silence` keeps both sockets open, forwards nothing, and answers nothing. */
  lose(loss: Loss): void {
    if (loss === 'reset') this.#client.resetAndDestroy();
    else if (loss === 'end') this.#client.end();
    this.#isSilent = true;
    // The browser's end closes soon after, as with a real proxy.
    if (loss !== 'silence') this.#browser.destroy();
  }

  inject(bytes: Buffer): void {
    this.#injected = bytes;
    if (this.#isUpgraded && this.#down.atBoundary) this.#client.write(bytes);
  }

  #pass(chunk: Buffer, onMessage: () => void): void {
    if (this.#isSilent) return;
    let frames = chunk;
    if (!this.#isUpgraded) {
      // The response to the upgrade is small, so it arrives in one chunk.
      this.#isUpgraded = true;
      frames = chunk.subarray(chunk.indexOf('\r\n\r\n') + 4);
    }
    // After an inserted frame, messages of the browser are dropped.
    if (this.#injected !== undefined && this.#down.atBoundary) return;
    const before = this.#down.messages;
    this.#down.push(frames);
    this.#client.write(chunk);
    if (this.#injected !== undefined && this.#down.atBoundary) this.#client.write(this.#injected);
    for (let count = before; count < this.#down.messages && !this.#isSilent; count++) onMessage();
  }
}

/** Connects to the browser. */
export const join: Upgrade = (_socket, facts) => facts.join();

/** Never answers, and keeps the socket. */
export const ignore: Upgrade = (socket) => void socket.resume();

/** Accepts the WebSocket, and never sends a message. */
export const accept: Upgrade = (socket, { key }) => {
  socket.write(`${switching(key)}\r\n\r\n`);
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

function switching(key: string): string {
  const accepted = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
  return `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: ${accepted}`;
}
