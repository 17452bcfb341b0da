import type { SpareConnection } from '../net/spare-connection.js';
import { clock, startTimer } from '../shared/clock.js';
import type { NetworkSettings } from '../shared/network.js';
import { endTasks } from '../shared/process-state.js';
import { CdpClient } from './cdp-client.js';
import { Client, type CdpPort, type ClientKind } from './client.js';
import { Flight } from './flight.js';
import type { Frame, Message, BrowserProtocol, SocketEnd, WireMessage } from './forms.js';
import {
  BrowserFault,
  contentOf,
  expectResponse,
  fits,
  isMalformed,
  isRead,
  MalformedMessage,
  NoAnswer,
  readMessage,
  writtenMessage,
} from './message.js';
import { Sessions } from './sessions.js';
import { BrowserSocket } from './socket.js';
import { BrowserAnswer, faultFor, Stack, withParams } from './stack.js';
import { WaitingTargets } from './waiting-targets.js';

/** A message, and who receives it. */
interface Receiver {
  readonly client: Client;
  readonly message: WireMessage;
}

/** What all connections to one browser share. */
export interface Shared {
  readonly stack: Stack;
  readonly sessions: Sessions<Client>;
  readonly waiting: WaitingTargets;
  /** Called with the name of an event that is not what the protocol says. No client receives it. */
  readonly onMalformed: (name: string) => void;
}

export function newShared(onMalformed: Shared['onMalformed'] = () => {}): Shared {
  const sessions = new Sessions<Client>();
  return { stack: new Stack(), sessions, waiting: new WaitingTargets(sessions), onMalformed };
}

/** When a connection needs a command, for a service that closes one without commands. */
interface KeepAlivePlan {
  /** Milliseconds since the last message to the browser. */
  readonly after: number;
  readonly protocol: BrowserProtocol;
}

interface WireOptions {
  readonly network?: NetworkSettings;
  readonly spare?: SpareConnection | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly keepAlive?: KeepAlivePlan | undefined;
  /** What the connection shares with others to the same browser. Default: nothing. */
  readonly shared?: Shared;
  /** Who has the connection itself. Default: the automation library. */
  readonly kind?: ClientKind;
}

/** Commands that change nothing. */
const KEEP_ALIVE: Readonly<Record<BrowserProtocol, string>> = {
  cdp: 'Browser.getVersion',
  bidi: 'session.status',
};
/** The events that the table of sessions reads. */
const OF_TARGETS = /^Target\.(attachedToTarget|target(Created|InfoChanged))$/;

/**
 * One WebSocket to a browser, with its clients at this side. What comes from the browser is read once: it belongs to a command in flight,
 * or to the client of its session. The messages of the library and of further clients pass the layers; ours do not.
 */
export class Wire {
  readonly socket: BrowserSocket;
  readonly flight = new Flight<Client>((id) => this.shared.sessions.get(id) !== undefined);
  readonly shared: Shared;
  readonly ended: Promise<SocketEnd>;
  /** Who has the connection itself. */
  readonly main: Client;
  /** Our own client of the connection itself: the library must not see that we attach there. */
  readonly own: CdpClient;
  readonly #root: Client;
  #lastSent = clock.now();

  static async open(url: URL, signal: AbortSignal, options: WireOptions = {}): Promise<Wire> {
    const { keepAlive, kind = 'library', shared = newShared(), ...how } = options;
    const wire = new Wire(await BrowserSocket.open(url, signal, how), shared, kind);
    if (keepAlive) wire.#keepAlive(keepAlive);
    return wire;
  }

  private constructor(socket: BrowserSocket, shared: Shared, kind: ClientKind) {
    this.socket = socket;
    this.shared = shared;
    this.ended = socket.ended;
    this.main = new Client(this, kind);
    this.#root = kind === 'own' ? this.main : new Client(this, 'own');
    this.own = new CdpClient(this.#root);
    socket.onMessage = (data, isBinary) => {
      if (endTasks.ending) void endTasks.ending.then(() => this.#receive(data, isBinary));
      else this.#receive(data, isBinary);
    };
    void socket.ended.then(() => {
      this.flight.end();
      shared.sessions.leave(({ wire }) => wire === this);
    });
  }

  /** Opens a session of the browser in this connection, as a client of its own. */
  async openSession(kind: ClientKind): Promise<Client> {
    const { sessionId } = await this.own.send('Target.attachToBrowserTarget');
    return this.clientOf(sessionId, kind);
  }

  /** Makes a session a client of its own. */
  clientOf(sessionId: string, kind: ClientKind): Client {
    const client = new Client(this, kind, sessionId);
    this.shared.sessions.give(sessionId, client);
    return client;
  }

  /** Opens a client of our own, in a session of the browser. */
  async openOwn(): Promise<CdpClient> {
    return new CdpClient(await this.openSession('own'));
  }

  /** Takes the connection from its client, who receives nothing more: no layer sees what happens from now on. */
  takeOver(): CdpPort {
    this.main.detach();
    return this.#root;
  }

  /** Ends a client that has a session. Its events that are under way reach nobody; the browser reports the end of its sessions. */
  endSession(client: Client): void {
    if (client.isDetached) return;
    client.detach();
    this.flight.leave(client);
    const { root } = client;
    const opener = this.shared.sessions.get(root)?.parent?.id;
    // Nobody waits for the response: the browser handles its commands in order.
    this.own.send('Target.detachFromTarget', { sessionId: root }, opener).catch(() => {});
  }

  /**
   * @internal Sends a command of a client that the layers may see.
   *
   * @param settle Receives the response instead of the client; undefined if its session has ended.
   */
  fromClient(
    client: Client,
    command: WireMessage<string | Frame>,
    isBinary: boolean,
    settle?: (response: WireMessage | undefined) => void,
  ): void {
    const { stack, sessions } = this.shared;
    const handlers = client.kind === 'own' ? [] : stack.commandHandlers(command.method);
    const isLimited = stack.isLimit && client.kind !== 'own';
    if (!isLimited && handlers.length === 0) return this.#send(command, client, isBinary, settle);
    if (command.malformed) throw command.malformed;
    const { id, method = '', sessionId } = command;
    // The browser may read other fields of a message that names them twice.
    const whole = isLimited ? writtenMessage(contentOf(command)) : command;
    const send = (changes: object | undefined) => {
      const sent = changes ? withParams(whole, changes) : whole;
      return client.isDetached ? Promise.reject(new NoAnswer()) : this.#ask(sent, client, isBinary);
    };
    // While the browser works, only what names the command is kept of it.
    const about = { id, method, sessionId };
    const receive =
      settle ?? ((response) => (response ? void this.#deliver(client, response, isBinary) : undefined));
    const answered = stack.command(whole, handlers, { client, sessions, send }).then(
      (answer) => receive(answer.messageFor(about)),
      (error: unknown) => receive(faultFor(about, error)),
    );
    answered.catch((error: unknown) => {
      if (!(error instanceof MalformedMessage)) throw error;
      this.socket.cut('dropped');
    });
  }

  #ask(command: WireMessage<string | Frame>, client: Client, isBinary: boolean): Promise<BrowserAnswer> {
    const { method = '' } = command;
    return new Promise((resolve, reject) =>
      this.#send(command, client, isBinary, settlerOf(method, resolve, reject)),
    );
  }

  /** @internal */
  requestParts(
    client: Client,
    command: Message,
    parts: Iterable<Uint8Array>,
    settle: (response: WireMessage | undefined) => void,
  ): void {
    this.flight.add(command, { method: command.method ?? '', client, settle });
    this.#lastSent = clock.now();
    void this.socket.sendParts(parts);
  }

  #send(
    command: WireMessage<string | Frame>,
    client: Client,
    isBinary: boolean,
    settle?: (response: WireMessage | undefined, isFault?: boolean) => void,
  ): void {
    const { method = '' } = command;
    const opens = method === 'Target.attachToBrowserTarget' && { opens: true };
    this.flight.add(command, { method, client, ...(settle && { settle }), ...opens });
    this.#lastSent = clock.now();
    this.socket.send(command.data, isBinary);
  }

  /**
   * Receives a message. One that is not what the protocol says ends the connection, because it makes libraries throw an uncaught exception,
   * which would end the process. Other errors, such as those of the callback's own listeners, are not hidden.
   */
  #receive(data: Buffer, isBinary: boolean): void {
    let receiver: Receiver | undefined;
    let ended: unknown;
    try {
      const message = readMessage(data);
      if (message.id === undefined && message.method === 'Target.detachedFromTarget')
        ended = message.params?.['sessionId'];
      receiver = message.id === undefined ? this.#onEvent(message, isBinary) : this.#onResponse(message);
    } catch {
      // No code of the caller runs there: the message can be, for example, too deep to be written again.
      return this.socket.cut('dropped');
    }
    if (receiver) void this.#deliver(receiver.client, receiver.message, isBinary);
    // The table keeps the session until its end was delivered: the receiver looks it up.
    if (ended !== undefined) this.#endSession(ended);
  }

  async #deliver(client: Client, message: WireMessage, isBinary: boolean): Promise<void> {
    try {
      await client.receive(message, isBinary);
    } catch (error) {
      if (!(error instanceof MalformedMessage) && !isMalformed(message)) throw error;
      this.socket.cut('dropped');
    }
  }

  /** Returns who receives a response that no layer reads. A late one is no fault of the browser. */
  #onResponse(message: WireMessage): Receiver | undefined {
    const found = this.flight.take(message);
    const isFault = found && expectResponse(message);
    if (!found?.settle) return found?.client && { client: found.client, message };
    found.settle(message, isFault);
    return undefined;
  }

  /** Notes an event, lets it pass the layers, and returns who receives it now. */
  #onEvent(message: WireMessage, isBinary: boolean): Receiver | undefined {
    const { type, method, params, error } = message;
    // WebDriver BiDi has types of messages, and errors without an id.
    if (method === undefined && (type !== 'error' || error === undefined)) return undefined;
    if (type === 'event' && params === undefined) return undefined;
    if (type === 'error') expectResponse(message);
    const { stack, sessions, onMalformed } = this.shared;
    const client = this.#receiverOf(message);
    try {
      if (method !== undefined && OF_TARGETS.test(method) && !sessions.note(message, client))
        return undefined;
      if (client.kind === 'own') return { client, message };
      if (client.isDetached || sessions.isAboutHidden(message)) return undefined;
      const handlers = stack.eventHandlers(method);
      // The handlers receive what is read.
      if ((handlers.length === 0 || !isRead(method)) && !fits(message)) throw new MalformedMessage();
      if (handlers.length === 0) return { client, message };
      let now: Receiver | undefined;
      let isLater = false;
      const deliver = (changes: object | undefined): void => {
        const passed = changes ? (withParams(message, changes) as WireMessage) : message;
        if (isLater) void this.#deliver(client, passed, isBinary);
        else now = { client, message: passed };
      };
      const passing = stack.event(message, handlers, { client, sessions, deliver });
      isLater = true;
      if (passing instanceof Promise) passing.catch(() => this.socket.cut('dropped'));
      return now;
    } catch (failure) {
      if (!(failure instanceof MalformedMessage)) throw failure;
      onMalformed(method!);
      return undefined;
    }
  }

  /** The client of an event: that of its session, or the one that has asked for the session that begins or ends. */
  #receiverOf({ method, params = {}, sessionId }: WireMessage): Client {
    const { sessions } = this.shared;
    if (sessionId !== undefined) return sessions.get(sessionId)?.client ?? this.#holder;
    if (method === 'Target.attachedToTarget') {
      const { type } = (params['targetInfo'] ?? {}) as { type?: unknown };
      return (type === 'browser' && this.flight.takeOpening()) || this.#holder;
    }
    if (method !== 'Target.detachedFromTarget') return this.#holder;
    const ended = sessions.get(String(params['sessionId']));
    return ended && ended.client.root === ended.id ? this.#root : this.#holder;
  }

  /** Who has the connection itself now. */
  get #holder(): Client {
    return this.main.isDetached ? this.#root : this.main;
  }

  #endSession(id: unknown): void {
    if (typeof id !== 'string') return;
    const ended = this.shared.sessions.end(id);
    // The browser may not have reported the beginning of the session.
    this.flight.end(new Set([id, ...ended.map((one) => one.id)]));
    for (const { client, id: root } of ended) if (client.root === root) client.detach();
  }

  #keepAlive({ after, protocol }: KeepAlivePlan): void {
    const wait = (milliseconds: number): void => {
      // The lease keeps the process alive, if anything does.
      const timer = startTimer(milliseconds, check)?.unref();
      void this.ended.then(() => clock.clearTimeout(timer));
    };
    const check = (): void => {
      const left = after - (clock.now() - this.#lastSent);
      if (left > 0) return wait(left);
      this.own.send(KEEP_ALIVE[protocol]).catch(() => {});
      wait(after);
    };
    wait(after);
  }
}

/** Settles a promise with the response, and keeps nothing of the command. */
function settlerOf(
  method: string,
  resolve: (answer: BrowserAnswer) => void,
  reject: (error: Error) => void,
): (response: WireMessage | undefined, isFault?: boolean) => void {
  const receive = (response: WireMessage, isFault: boolean) =>
    isFault ? reject(new BrowserFault(response)) : resolve(new BrowserAnswer(method, response));
  return (response, isFault = false) => (response ? receive(response, isFault) : reject(new NoAnswer()));
}
