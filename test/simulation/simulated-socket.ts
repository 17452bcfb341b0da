import type { CdpPort } from '../../src/wire/client.js';
import { writtenMessage } from '../../src/wire/message.js';
import type { SocketEnd } from '../../src/wire/forms.js';
import { newShared, type Wire } from '../../src/wire/wire.js';
import type { Command, SimulatedBrowser } from './simulated-browser.js';
import type { Grant, SimulatedService } from './simulated-service.js';
import type { World } from './world.js';

/** A WebSocket to a leased browser in memory, which replaces the library's own. */
export class SimulatedSocket {
  readonly ended: Promise<SocketEnd>;
  readonly detached: Promise<void>;
  readonly methodsInFlight: readonly string[] = [];
  readonly shared = newShared();
  readonly grant: Grant;
  readonly #world: World;
  readonly #onEnd: () => void;
  /** Time at which the latest message arrives: messages keep their order. */
  #arrival = 0;
  #resolve!: (end: SocketEnd) => void;
  #detach!: () => void;
  #end: SocketEnd | undefined;
  #isOver = false;
  #isTakenOver = false;
  #onEvent: Parameters<CdpPort['listen']>[0] = () => {};

  constructor(world: World, grant: Grant, onEnd = () => {}) {
    this.#world = world;
    this.#onEnd = onEnd;
    this.grant = grant;
    this.browser.sockets.add(this);
    this.ended = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    this.detached = new Promise((resolve) => {
      this.#detach = resolve;
    });
  }

  /** The one client of this connection. */
  get main(): this {
    return this;
  }

  /** The library's own client, of which only the end is used. */
  get own(): this {
    return this;
  }

  get browser(): SimulatedBrowser {
    return this.grant.browser;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** A callback uses the browser. */
  use(choice: 'default' | 'new'): void {
    if (!this.#isTakenOver) this.#transmit(() => this.browser.use(this.grant.call, choice));
  }

  takeOver(): CdpPort {
    this.#isTakenOver = true;
    this.#detach();
    return {
      ended: this.ended,
      request: (command, settle) => this.#execute(structuredClone(command) as Command, settle),
      listen: (onEvent) => (this.#onEvent = onEvent),
      close: () => {},
    };
  }

  close(reason: SocketEnd): void {
    if (this.#end || this.#isTakenOver) return;
    this.#end = reason;
    const isSlow = this.#world.strikes('socket: slow to close');
    this.#world.clock.after(isSlow ? this.#world.random.between(10, 1000) : 1, () => this.#finish());
  }

  /** Closes immediately, and notifies a moment later, as ws does. */
  cut(reason: SocketEnd): void {
    this.#end ??= reason;
    this.browser.sockets.delete(this);
    this.#world.clock.after(0, () => this.#finish());
  }

  /** Ends the socket from the other side or by the network. */
  lose(reason: SocketEnd): void {
    if (this.#isOver) return;
    this.#end ??= reason;
    this.#world.tell(`socket: ${this.#end}`);
    this.#finish();
  }

  #execute(command: Command, settle: Parameters<CdpPort['request']>[1]): void {
    const { clock, random } = this.#world;
    this.#transmit(() => {
      const fails = this.#world.strikes('browser: command fails');
      const answer = fails ? { error: { message: 'Internal error' } } : this.browser.execute(command);
      if (!answer || this.#world.strikes('browser: command hangs')) return;
      const message = writtenMessage({ id: command.id, ...answer });
      const ended = command.method === 'Target.closeTarget' ? command.params?.['targetId'] : undefined;
      clock.after(random.between(1, 10), () => {
        if (this.#isOver) return;
        settle(message);
        if (ended === undefined || this.browser.has(ended)) return;
        this.#onEvent(writtenMessage({ method: 'Target.targetDestroyed', params: { targetId: ended } }));
      });
    });
  }

  /** Calls `arrive` when a message has reached the browser. */
  #transmit(arrive: () => void): void {
    if (this.#end) return;
    const { clock, random } = this.#world;
    this.#arrival = Math.max(this.#arrival + 0.001, clock.now + random.between(1, 10));
    clock.after(this.#arrival - clock.now, () => {
      if (this.browser.sockets.has(this)) arrive();
    });
  }

  #finish(): void {
    this.browser.sockets.delete(this);
    if (this.#isOver) return;
    this.#isOver = true;
    this.#resolve(this.#end!);
    this.#detach();
    this.#onEnd();
  }
}

/** Replaces `Wire.open`. */
export async function openSimulatedSocket(
  world: World,
  service: SimulatedService,
  { url, signal }: { url: string; signal: AbortSignal },
): Promise<Wire> {
  const { ConnectError } = world.library.api;
  const path = new URL(url).pathname.split('/')[1]!;
  const grant = service.leaseOf(path);
  const aborted = new Promise<never>((_resolve, reject) => {
    const stop = () => reject(new ConnectError('The WebSocket failed: closed before it was open.'));
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
  });
  await Promise.race([upgrade(world), aborted]);
  if (service.shape === 'cdp') return service.connect() as unknown as Wire;
  if (!grant || grant.state !== 'leased') {
    throw new ConnectError('The WebSocket upgrade was refused with status 404.', { status: 404 });
  }
  return new SimulatedSocket(world, grant) as unknown as Wire;
}

async function upgrade(world: World): Promise<void> {
  const { clock, random } = world;
  const { ConnectError } = world.library.api;
  await clock.sleep(world.strikes('upgrade: slow') ? random.between(1000, 40_000) : random.between(1, 50));
  if (world.strikes('upgrade: no answer')) return new Promise(() => {});
  if (!world.strikes('upgrade: refused')) return undefined;
  throw new ConnectError('The WebSocket upgrade was refused with status 403.', { status: 403 });
}
