import type { Frame, Socket, SocketEnd } from '../../src/connect/socket.js';
import type { Grant, SimulatedService } from './simulated-service.js';
import type { World } from './world.js';

/** A WebSocket to a leased browser in memory, which replaces the library's own. */
export class SimulatedSocket {
  readonly ended: Promise<SocketEnd>;
  onMessage: (data: Frame, isBinary: boolean) => void = () => {};
  /** Whether a page prevents connecting until it is closed. */
  hasUnresponsivePage = false;
  readonly #world: World;
  readonly #grant: Grant | undefined;
  #resolve!: (end: SocketEnd) => void;
  #end: SocketEnd | undefined;
  #isOver = false;

  constructor(world: World, grant: Grant | undefined) {
    this.#world = world;
    this.#grant = grant;
    grant?.sockets.add(this);
    this.ended = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  get end(): SocketEnd | undefined {
    return this.#end;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  send(data: string | Frame): void {
    if (this.#end || typeof data !== 'string') return;
    const { id, method } = JSON.parse(data) as { id: number; method: string };
    const isForPage = method === 'Runtime.evaluate';
    if (isForPage && this.hasUnresponsivePage) return;
    if (method === 'Target.closeTarget') this.#thaw();
    const targetInfos = [{ targetId: 't', type: 'page', url: 'about:blank' }];
    const answer = JSON.stringify({ id, result: { targetInfos, sessionId: 'page' } });
    this.#world.clock.after(this.#world.random.between(1, 20), () => {
      if (!this.#isOver) this.onMessage(Buffer.from(answer), false);
    });
  }

  close(reason: SocketEnd): void {
    if (this.#end) return;
    this.#end = reason;
    const isSlow = this.#world.strikes('socket: slow to close');
    this.#world.clock.after(isSlow ? this.#world.random.between(10, 1000) : 1, () => this.#finish());
  }

  /** Closes immediately, and notifies a moment later, as ws does. */
  cut(reason: SocketEnd): void {
    this.#end ??= reason;
    this.#grant?.sockets.delete(this);
    this.#world.clock.after(0, () => this.#finish());
  }

  /** Ends the socket from the other side or by the network. */
  lose(reason: SocketEnd): void {
    if (this.#isOver) return;
    this.#end ??= reason;
    this.#world.tell(`socket: ${this.#end}`);
    this.#finish();
  }

  #thaw(): void {
    for (const socket of this.#grant?.sockets ?? []) (socket as SimulatedSocket).hasUnresponsivePage = false;
  }

  #finish(): void {
    this.#isOver = true;
    this.#grant?.sockets.delete(this);
    this.#resolve(this.#end!);
  }
}

/** Replaces `Socket.open`. */
export async function openSimulatedSocket(
  world: World,
  service: SimulatedService,
  { url, signal }: { url: string; signal: AbortSignal },
): Promise<Socket> {
  const { ConnectError } = world.library.api;
  const grant = service.leaseOf(new URL(url).pathname.split('/')[1]!);
  const aborted = new Promise<never>((_resolve, reject) => {
    const stop = () => reject(new ConnectError('The WebSocket failed: closed before it was open.'));
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
  });
  await Promise.race([upgrade(world), aborted]);
  if (!grant || grant.state !== 'leased') {
    throw new ConnectError('The WebSocket upgrade was refused with status 404.', { status: 404 });
  }
  const socket = new SimulatedSocket(world, grant);
  socket.hasUnresponsivePage = [...grant.sockets].some(
    (other) => (other as SimulatedSocket).hasUnresponsivePage,
  );
  return socket as unknown as Socket;
}

async function upgrade(world: World): Promise<void> {
  const { clock, random } = world;
  const { ConnectError } = world.library.api;
  await clock.sleep(world.strikes('upgrade: slow') ? random.between(1000, 40_000) : random.between(1, 50));
  if (world.strikes('upgrade: no answer')) return new Promise(() => {});
  if (!world.strikes('upgrade: refused')) return undefined;
  throw new ConnectError('The WebSocket upgrade was refused with status 403.', { status: 403 });
}
