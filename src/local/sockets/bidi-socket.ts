import type { WebSocket } from 'ws';
import { isRecord } from '../../shared/json.js';
import type { Chromium } from '../browser/chromium.js';
import type { ServedLease } from '../pool/served-lease.js';
import type { Quirks } from '../settings.js';
import { closeWebSocket, GOING_AWAY, NORMAL, SERVER_ERROR } from '../../net/accept-websocket.js';
import { receiveFrom, sendTo, slowDown } from './websocket.js';
import { BidiSession, type BidiLibrary, type BidiMessage } from './bidi-session.js';

type SessionKind = Quirks['bidiSession'];

/**
 * The BiDi WebSocket of a client. It answers `session.new`, `session.status` and `session.end` itself: chromium-bidi ends
 * no session and reports none in its status. chromium-bidi answers all other commands.
 */
export class BidiSocket {
  readonly #socket: WebSocket;
  readonly #library: BidiLibrary;
  readonly #lease: ServedLease;
  readonly #chromium: Chromium;
  readonly #isShared: boolean;
  #session: BidiSession | undefined;
  #queue: Promise<void> = Promise.resolve();

  /** @param kind `existing`: the session exists from the start, and no command ends it. */
  constructor(
    socket: WebSocket,
    library: BidiLibrary,
    { lease, chromium, kind }: { lease: ServedLease; chromium: Chromium; kind: SessionKind },
  ) {
    this.#socket = socket;
    this.#library = library;
    this.#lease = lease;
    this.#chromium = chromium;
    this.#isShared = kind === 'existing';
    if (this.#isShared) this.#enqueue(() => this.#openShared());
    receiveFrom(socket, (data) => this.#enqueue(() => this.#receive(String(data))));
    socket.once('close', () => this.#session?.close());
  }

  /** Closes the WebSocket. No further command reaches the browser. */
  cut(): void {
    this.#end(GOING_AWAY, 'The lease has ended.');
  }

  /** Commands keep their order: they wait until the session is open. */
  #enqueue(step: () => void | Promise<void>): void {
    this.#queue = this.#queue.then(step).catch(() => this.#end(SERVER_ERROR, 'The browser does not answer.'));
  }

  async #receive(text: string): Promise<void> {
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    const command = readCommand(text);
    if (!command) return this.#fail(null, 'invalid argument', 'The message is not a BiDi command.');
    if (command.method === 'session.status') return this.#succeed(command.id, this.#status());
    if (command.method === 'session.new') return this.#new(command);
    if (!this.#session) return this.#fail(command.id, 'invalid session id', 'There is no session yet.');
    if (command.method !== 'session.end') {
      this.#session.send(command);
      return slowDown(this.#socket, this.#chromium.pipe);
    }
    this.#succeed(command.id, {});
    if (!this.#isShared) this.#end(NORMAL, 'The session has ended.');
  }

  #status(): object {
    const ready = !this.#session;
    return { ready, message: ready ? 'Ready for a session.' : 'A session exists already.' };
  }

  async #new(command: Command): Promise<void> {
    if (this.#session) return this.#fail(command.id, 'session not created', 'A session exists already.');
    const answer = await this.#open(command);
    if (answer['type'] !== 'success') return this.#send(answer);
    // chromium-bidi gives every session the id "unknown".
    const { capabilities } = answer['result'] as { capabilities: BidiMessage };
    const result = {
      sessionId: this.#lease.sessionId,
      capabilities: { ...capabilities, ...describeBrowser(String(capabilities['browserName'])) },
    };
    this.#send({ ...answer, result });
  }

  /** The client did not send this `session.new` and receives no answer. */
  async #openShared(): Promise<void> {
    await this.#open({ id: 0, method: 'session.new', params: { capabilities: {} } });
  }

  /** Opens the session. @returns chromium-bidi's answer to this `session.new`. */
  async #open(command: Command): Promise<BidiMessage> {
    let onMessage = (message: BidiMessage): void => this.#send(message);
    this.#session = await BidiSession.open(this.#library, this.#chromium, (message) => onMessage(message));
    if (this.#socket.readyState !== this.#socket.OPEN) this.#session.close();
    void this.#session.closed.then(() => this.#end(GOING_AWAY, 'The browser has ended.'));
    const answer = new Promise<BidiMessage>((resolve) => {
      onMessage = (message) => {
        if (message['id'] !== command.id) return this.#send(message);
        onMessage = (later) => this.#send(later);
        resolve(message);
      };
    });
    this.#session.send(command);
    return answer;
  }

  #succeed(id: number, result: object): void {
    this.#send({ type: 'success', id, result });
  }

  #fail(id: number | null, error: string, message: string): void {
    this.#send({ type: 'error', id, error, message });
  }

  #send(message: BidiMessage): void {
    sendTo(this.#socket, JSON.stringify(message));
  }

  #end(code: number, reason: string): void {
    this.#session?.close();
    closeWebSocket(this.#socket, code, reason);
  }
}

const PLATFORM_NAMES: Readonly<Record<string, string>> = { darwin: 'mac', win32: 'windows' };

/**
 * The capabilities of the browser as chromedriver answers them; clients compare them.
 *
 * @param product The `browserName` of chromium-bidi, such as `Chrome/156.0.0.0`.
 */
function describeBrowser(product: string): BidiMessage {
  const { platform } = process;
  return {
    browserName: 'chrome',
    browserVersion: product.split('/').at(-1),
    platformName: PLATFORM_NAMES[platform] ?? platform,
  };
}

/** A command from a client. */
type Command = BidiMessage & { readonly id: number; readonly method: string };

function readCommand(text: string): Command | undefined {
  try {
    const message: unknown = JSON.parse(text);
    return isRecord(message) && isCommand(message) ? (message as Command) : undefined;
  } catch {
    return undefined;
  }
}

function isCommand({ id, method }: BidiMessage): boolean {
  return Number.isSafeInteger(id) && (id as number) >= 0 && typeof method === 'string';
}
