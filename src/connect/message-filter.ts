import { clock } from '../shared/clock.js';
import { CdpClient, FIRST_ID } from './cdp-client.js';
import { shownMethod } from './large-message.js';
import {
  isRead,
  MisfitError,
  readCommand,
  readEvent,
  readMessage,
  readResult,
  type CommandName,
  type CommandParams,
  type Envelope,
  type EventName,
  type EventParams,
  type Message,
  type ResultOf,
} from './message.js';
import { Sessions, type SessionSocket } from './session-socket.js';
import type { Socket, SocketTap } from './socket.js';
import type { Frame } from './wire.js';

/** Longest message that can contain the id of a hidden page and matters to a library, in bytes. */
const LONGEST_TARGET_EVENT = 16 * 1024;

/**
 * What a feature does with the messages between an automation library, or another client, and its browser. Only the messages of
 * these names are read.
 */
export interface MessageRules {
  /**
   * Changes a command. Returns the parameters that differ; undefined to leave it as it is; `false` for one that succeeds without the
   * browser. The command waits for a promise, later commands do not; if it throws or rejects, the client receives the error. What `cdp`
   * sends meanwhile comes before the command.
   */
  readonly commands?: {
    readonly [Name in CommandName]?: (
      params: CommandParams<Name>,
      sessionId: string | undefined,
      cdp: CdpClient,
    ) => Changed | Promise<object | undefined>;
  };
  /** Returns the result of a command that the browser does not receive, or its error; undefined to send it. */
  readonly answers?: {
    readonly [Name in CommandName]?: (params: CommandParams<Name>) => Promise<object> | undefined;
  };
  /** No client can circumvent `commands` and `refuse`: each command is parsed, which costs time. */
  readonly isLimit?: boolean;
  /** Returns why no client may send a command; undefined if one may. */
  readonly refuse?: (method: string, sessionId: string | undefined) => string | undefined;
  /** Reads the result of a command of the client, who waits for the promise. Returns the fields that differ. */
  readonly results?: {
    readonly [Name in ResultName]?: (
      result: ResultOf<Name>,
      sessionId: string | undefined,
    ) => void | object | Promise<void | object>;
  };
  /**
   * Reads an event. Returns `false` for an event that no client receives, or a promise to hold it back, of `false` or of the parameters
   * that differ.
   */
  readonly events?: {
    readonly [Name in EventName]?: (
      params: EventParams<Name>,
      sessionId: string | undefined,
    ) => void | false | Promise<Changed>;
  };
  /** Returns further events of the session, which the client receives after an event that another rule has read. */
  readonly followUps?: (
    name: EventName,
    params: EventParams,
    sessionId: string | undefined,
  ) => readonly FollowUp[];
}

/** The parameters of a command that differ; `false` if the browser does not receive it. */
type Changed = object | false | undefined;

export interface FollowUp {
  readonly method: string;
  readonly params: object;
}

type ResultName =
  | 'Target.createBrowserContext'
  | 'Target.createTarget'
  | 'Target.getBrowserContexts'
  | 'Target.getTargets'
  | 'browser.createUserContext'
  | 'session.new';

/** The one filter of a connection: features share it by their rules, and clients of our own are beside the library's. */
export class MessageFilter implements SocketTap {
  /** A client of our own on the library's connection. It receives no events. */
  readonly cdp: CdpClient;
  readonly #socket: Socket;
  readonly #onMisfit: (name: string) => void;
  readonly #rules: MessageRules[] = [];
  readonly #sessions: Sessions;
  /** Commands whose results are read, by their session and id. */
  readonly #awaited = new Map<string, ResultName>();
  readonly #hidden = new Set<string>();

  /** @param onMisfit Called with the name of an event that is not what the protocol says. No client receives it. */
  constructor(socket: Socket, onMisfit: (name: string) => void = () => {}) {
    this.#socket = socket;
    this.#onMisfit = onMisfit;
    const send = (message: string) => socket.sendUnseen(message);
    this.cdp = new CdpClient({ ended: socket.detached, send, listen: () => {} });
    this.#sessions = new Sessions(socket, this.cdp);
  }

  /** Adds the rules of a feature. They apply after those that were added before. */
  add(...rules: readonly MessageRules[]): void {
    this.#rules.push(...rules);
  }

  /** Hides a context or a target of our own from all clients. */
  hide(targetOrContext: string): void {
    this.#hidden.add(targetOrContext);
  }

  /** Opens a session of the browser within the connection: for a client that neither sees the library nor is seen by it. */
  openSession(): Promise<SessionSocket> {
    return this.#sessions.ofBrowser();
  }

  command(data: string | Frame): string | Frame | undefined {
    const isLimited = this.#rules.some(({ isLimit }) => isLimit);
    const method = shownMethod(data);
    if (!isLimited && !this.#isWanted(method)) return data;
    const command = readMessage(data);
    // For the browser, that is no session.
    if (command.sessionId === '') delete command.sessionId;
    const refusal = this.#refusalOf(command);
    if (refusal !== undefined) return this.#refuse(command, refusal);
    const isWanted = this.#isWanted(command.method);
    // The browser may read other fields of a message that names them twice.
    if (!isWanted) return isLimited ? JSON.stringify(command) : data;
    const name = command.method as CommandName & ResultName;
    const answer = this.#answerOf(name, command);
    if (answer) {
      const refuse = (error: unknown) => this.#refuse(command, (error as Error).message);
      return void answer.then((result) => this.#answer(command, { result }), refuse);
    }
    if (this.#rules.some(({ results }) => results?.[name]))
      this.#awaited.set(keyOf(command.sessionId, command.id), name);
    let changed: Changed | Promise<object | undefined>;
    try {
      changed = this.#change(name, command);
    } catch (error) {
      if (error instanceof MisfitError) throw error;
      return this.#refuse(command, (error as Error).message);
    }
    if (changed === false) return this.#answer(command, { result: {} });
    if (changed instanceof Promise) return void this.#sendLater(command, changed);
    if (changed === undefined) return isLimited ? JSON.stringify(command) : data;
    return withParams(command, changed);
  }

  message(data: Frame, envelope: Envelope): Frame | undefined | Promise<Frame | undefined> {
    if (!(data instanceof Uint8Array)) return data;
    const { id = 0, method } = envelope;
    const deliver = (one: Frame | undefined) => one && this.#deliver(one, envelope);
    if (id > FIRST_ID && this.cdp.receive(data)) return undefined;
    if (envelope.id === undefined && this.#isHidden(data)) return undefined;
    if (envelope.isMisfit) {
      this.#onMisfit(method!);
      return undefined;
    }
    // Also with an id: a library may take the message for an event.
    if (!isRead(method) || !this.#rules.some(({ events }) => events?.[method])) {
      const response = envelope.id === undefined ? undefined : this.#onResponse(envelope, data);
      return response ? response.then(deliver) : deliver(data);
    }
    const changed = this.#onEvent(method, data);
    return changed instanceof Promise ? changed.then(deliver) : deliver(changed);
  }

  /** Returns a message for the library; undefined for one of another client. */
  #deliver(data: Frame, envelope: Envelope): Frame | undefined {
    return this.#sessions.take(data, envelope) ? undefined : data;
  }

  #isWanted(method: string | undefined): boolean {
    return (
      method !== undefined &&
      this.#rules.some(({ commands = {}, results = {}, answers = {} }) =>
        [commands, results, answers].some((one) => Object.hasOwn(one, method)),
      )
    );
  }

  #refusalOf({ method, sessionId }: Message): string | undefined {
    if (method === undefined) return undefined;
    return this.#rules
      .map(({ refuse }) => refuse?.(method, sessionId))
      .find((reason) => reason !== undefined);
  }

  #answerOf(name: CommandName, { params }: Message): Promise<object> | undefined {
    for (const { answers } of this.#rules) {
      const rule = answers?.[name] as ((of: unknown) => Promise<object> | undefined) | undefined;
      const answer = rule?.(readCommand(name, params));
      if (answer) return answer;
    }
    return undefined;
  }

  #change(name: CommandName, { params, sessionId }: Message): Changed | Promise<object | undefined> {
    let changed: object | undefined | Promise<object | undefined>;
    type Rule = (params: unknown, sessionId: string | undefined, cdp: CdpClient) => typeof changed | false;
    for (const { commands } of this.#rules) {
      const rule = commands?.[name] as Rule | undefined;
      if (!rule) continue;
      const call = (before: object | undefined) =>
        rule(readCommand(name, { ...params, ...before }), sessionId, this.cdp);
      if (changed instanceof Promise) {
        changed = changed.then(async (before) => merge(before, (await call(before)) || undefined));
        continue;
      }
      const before: object | undefined = changed;
      const next = call(before);
      if (next === false) return false;
      changed = next instanceof Promise ? next.then((one) => merge(before, one)) : merge(before, next);
    }
    return changed;
  }

  async #sendLater(command: Message, changing: Promise<object | undefined>): Promise<void> {
    try {
      this.#socket.sendUnseen(withParams(command, (await changing) ?? {}));
    } catch (error) {
      this.#refuse(command, (error as Error).message);
    }
  }

  #refuse(command: Message, message: string): undefined {
    return this.#answer(command, errorOf(command.method, message));
  }

  #answer(command: Message, what: object): undefined {
    const answer = { ...whose(command), ...what };
    const data = this.#deliver(Buffer.from(JSON.stringify(answer)), answer);
    if (data) void this.#socket.onMessage(data, false);
  }

  #inject(events: readonly FollowUp[], sessionId: string | undefined): void {
    for (const event of events) {
      const data = Buffer.from(JSON.stringify({ ...event, ...(sessionId !== undefined && { sessionId }) }));
      const delivered = this.#deliver(data, { method: event.method, sessionId });
      if (delivered) void this.#socket.onMessage(delivered, false);
    }
  }

  /** Returns a promise for a response that a rule reads, and may change. */
  #onResponse({ id, sessionId }: Envelope, data: Uint8Array): Promise<Frame> | undefined {
    const key = keyOf(sessionId, id);
    const name = this.#awaited.get(key);
    if (!name) return undefined;
    this.#awaited.delete(key);
    const message = readMessage(data);
    if (message.error !== undefined) return undefined;
    const read = readResult(name, message.result);
    type Rule = (result: unknown, sessionId: string | undefined) => object | undefined;
    const rules = this.#rules.flatMap(({ results }) => (results?.[name] as Rule | undefined) ?? []);
    return Promise.all(rules.map(async (rule) => rule(read, sessionId))).then(
      (changes) => {
        const changed = changes.reduce(merge, undefined);
        if (!changed) return data;
        return Buffer.from(
          JSON.stringify({ ...message, result: { ...(message.result as object), ...changed } }),
        );
      },
      (error: unknown) =>
        Buffer.from(JSON.stringify({ ...whose(message), ...errorOf(name, (error as Error).message) })),
    );
  }

  #onEvent(name: EventName, data: Uint8Array): Frame | undefined | Promise<Frame | undefined> {
    const message = readMessage(data);
    const params: EventParams = readEvent(name, message.params);
    const { sessionId } = message;
    type Rule = (params: EventParams, sessionId: string | undefined) => void | false | Promise<Changed>;
    const read = this.#rules.map(({ events }) => (events?.[name] as Rule | undefined)?.(params, sessionId));
    if (read.includes(false)) return undefined;
    const held = read.flatMap((one) => one || []);
    const followUps = this.#rules.flatMap((rule) => rule.followUps?.(name, params, sessionId) ?? []);
    // After this event was delivered.
    if (followUps.length > 0) clock.setImmediate(() => this.#inject(followUps, sessionId));
    if (held.length === 0) return data;
    return Promise.all(held).then((changes) => {
      if (changes.includes(false)) return undefined;
      const changed = changes.map((one) => one || undefined).reduce(merge, undefined);
      return changed ? Buffer.from(withParams(message, changed)) : data;
    });
  }

  #isHidden(data: Uint8Array): boolean {
    if (this.#hidden.size === 0 || data.length > LONGEST_TARGET_EVENT) return false;
    const text = String(data);
    if (![...this.#hidden].some((id) => text.includes(id))) return false;
    // Later messages name only the session or the page.
    for (const [, id] of text.matchAll(/"(?:targetId|sessionId|context)":\s*"([\w-]+)"/g))
      this.#hidden.add(id!);
    return true;
  }
}

function errorOf(method = '', message: string): object {
  // The methods of WebDriver BiDi begin with a small letter.
  const isCdp = /^[A-Z]/.test(method);
  return isCdp
    ? { error: { code: -32_000, message } }
    : { type: 'error', error: 'invalid argument', message };
}

function whose({ id, sessionId }: Message): Pick<Message, 'id' | 'sessionId'> {
  return { id, ...(sessionId !== undefined && { sessionId }) };
}

function keyOf(sessionId: string | undefined, id: number | undefined): string {
  return `${sessionId ?? ''} ${id}`;
}

function merge(before: object | undefined, next: object | undefined): object | undefined {
  return before && next ? { ...before, ...next } : (next ?? before);
}

function withParams(message: Message, changed: object): string {
  return JSON.stringify({ ...message, params: { ...message.params, ...changed } });
}
