import { clock } from '../shared/clock.js';
import { CdpClient } from './cdp-client.js';
import {
  contentOf,
  fits,
  isRead,
  MisfitError,
  readCommand,
  readEvent,
  readResult,
  writtenMessage,
  type CommandName,
  type CommandParams,
  type EventName,
  type EventParams,
  type ResultOf,
} from './message.js';
import { Sessions, type SessionSocket } from './session-socket.js';
import type { Socket, SocketTap } from './socket.js';
import type { Frame, Message, WireMessage } from './wire.js';

type Command = WireMessage<string | Frame>;

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
      params: Message['params'],
    ) => void | object | Promise<void | object>;
  };
  /**
   * Reads an event. Returns `false` for an event that no client receives, or the parameters that differ; a promise of either holds it
   * back.
   */
  readonly events?: {
    readonly [Name in EventName]?: (
      params: EventParams<Name>,
      sessionId: string | undefined,
    ) => void | Changed | Promise<Changed>;
  };
  /** The rules of `events` read no body of a request: decoding a large one would cost each client that changes requests much time. */
  readonly readsNoBodies?: boolean;
  /** Returns further events of the session, which the client receives after an event that another rule has read. */
  readonly followUps?: (
    name: EventName,
    params: EventParams,
    sessionId: string | undefined,
  ) => readonly Message[];
}

/** The parameters of a command that differ; `false` if the browser does not receive it. */
type Changed = object | false | undefined;

type ResultName =
  | 'Extensions.loadUnpacked'
  | 'Page.navigate'
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
  readonly #awaited = new Map<string, { readonly name: ResultName; readonly params: Message['params'] }>();
  readonly #hidden = new Set<string>();

  /** @param onMisfit Called with the name of an event that is not what the protocol says. No client receives it. */
  constructor(socket: Socket, onMisfit: (name: string) => void = () => {}) {
    this.#socket = socket;
    this.#onMisfit = onMisfit;
    const send = (command: Message) => socket.sendUnseen(writtenMessage(command));
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

  command(command: Command): Command | undefined {
    const { method, misfit } = command;
    const isLimited = this.#rules.some(({ isLimit }) => isLimit);
    const isWanted = this.#isWanted(method);
    if (!isLimited && !isWanted) return command;
    if (misfit) throw misfit;
    const refusal = this.#refusalOf(command);
    if (refusal !== undefined) return this.#refuse(command, refusal);
    // The browser may read other fields of a message that names them twice.
    const unchanged = () => (isLimited ? writtenMessage(contentOf(command)) : command);
    if (!isWanted) return unchanged();
    const name = method as CommandName & ResultName;
    const answer = this.#answerOf(name, command);
    if (answer) {
      const refuse = (error: unknown) => this.#refuse(command, (error as Error).message);
      return void answer.then((result) => this.#answer(command, { result }), refuse);
    }
    if (this.#rules.some(({ results }) => results?.[name]))
      this.#awaited.set(keyOf(command), { name, params: command.params });
    let change: Changed | Promise<object | undefined>;
    try {
      change = this.#change(name, command);
    } catch (error) {
      if (error instanceof MisfitError) throw error;
      return this.#refuse(command, (error as Error).message);
    }
    if (change === false) return this.#answer(command, { result: {} });
    if (change instanceof Promise) return void this.#sendLater(command, change);
    return change ? withParams(command, change) : unchanged();
  }

  message(message: WireMessage): WireMessage | undefined | Promise<WireMessage | undefined> {
    const { id, method } = message;
    if (this.cdp.receive(message)) return undefined;
    if (id === undefined && this.#isHidden(message)) return undefined;
    if (!fits(message)) {
      this.#onMisfit(method!);
      return undefined;
    }
    // Also with an id: a library may take the message for an event.
    const isEvent = isRead(method) && this.#rules.some(({ events }) => events?.[method]);
    const read = isEvent ? this.#onEvent(method, message) : this.#onResponse(message);
    return read instanceof Promise ? read.then((one) => this.#deliver(one)) : this.#deliver(read);
  }

  /** Returns a message for the library; undefined for one of another client. */
  #deliver(message: WireMessage | undefined): WireMessage | undefined {
    return message && !this.#sessions.take(message) ? message : undefined;
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

  async #sendLater(command: Command, change: Promise<object | undefined>): Promise<void> {
    try {
      this.#socket.sendUnseen(withParams(command, (await change) ?? {}));
    } catch (error) {
      this.#refuse(command, (error as Error).message);
    }
  }

  #refuse(command: Message, message: string): undefined {
    return this.#answer(command, errorOf(command.method, message));
  }

  #answer({ id, sessionId }: Message, what: object): undefined {
    this.#pass({ id, ...what, sessionId });
  }

  /** Passes a message of our own to its client. */
  #pass(message: object): void {
    const delivered = this.#deliver(writtenMessage(message));
    if (delivered) void this.#socket.deliver(delivered, false);
  }

  /** Returns a promise for a response that a rule reads, and may change. */
  #onResponse(response: WireMessage): WireMessage | Promise<WireMessage> {
    const { id, sessionId } = response;
    const key = keyOf(response);
    const awaited = id === undefined ? undefined : this.#awaited.get(key);
    if (!awaited) return response;
    this.#awaited.delete(key);
    if (response.error !== undefined) return response;
    const { name, params } = awaited;
    const content = contentOf(response);
    const read = readResult(name, content.result);
    type Rule = (result: unknown, ...of: unknown[]) => object | undefined | Promise<object | undefined>;
    const rules = this.#rules.flatMap(({ results }) => (results?.[name] as Rule | undefined) ?? []);
    const write = (changes: readonly (object | undefined)[]) => {
      const change = changes.reduce(merge, undefined);
      return change
        ? writtenMessage({ ...content, result: { ...(content.result as object), ...change } })
        : response;
    };
    const fail = (error: unknown) =>
      writtenMessage({ id, ...errorOf(name, (error as Error).message), sessionId });
    try {
      const changes = rules.map((rule) => rule(read, sessionId, params));
      return areReady(changes) ? write(changes) : Promise.all(changes).then(write, fail);
    } catch (error) {
      return fail(error);
    }
  }

  #onEvent(name: EventName, event: WireMessage): WireMessage | undefined | Promise<WireMessage | undefined> {
    const { sessionId } = event;
    const readsBodies = this.#rules.some(
      ({ events, readsNoBodies }) => events?.[name] && readsNoBodies !== true,
    );
    const params: EventParams = readEvent(name, (readsBodies ? contentOf(event) : event).params);
    type Rule = (params: EventParams, sessionId: string | undefined) => Changed | Promise<Changed>;
    const read = this.#rules.map(({ events }) => (events?.[name] as Rule | undefined)?.(params, sessionId));
    if (read.includes(false)) return undefined;
    const followUps = this.#rules.flatMap((rule) => rule.followUps?.(name, params, sessionId) ?? []);
    // After this event was delivered.
    if (followUps.length > 0)
      clock.setImmediate(() => followUps.forEach((one) => this.#pass({ ...one, sessionId })));
    const write = (changes: readonly Changed[]) => {
      if (changes.includes(false)) return undefined;
      const change = changes.map((one) => one || undefined).reduce(merge, undefined);
      return change ? withParams(event, change) : event;
    };
    return areReady(read) ? write(read) : Promise.all(read).then(write);
  }

  #isHidden({ data }: WireMessage): boolean {
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

/** Whether nothing is held back: a message that waits even for a moment could be overtaken by the next one. */
function areReady<Value>(values: readonly (Value | Promise<Value>)[]): values is readonly Value[] {
  return !values.some((one) => one instanceof Promise);
}

function keyOf({ id, sessionId }: Message): string {
  return `${sessionId ?? ''} ${id}`;
}

function merge(before: object | undefined, next: object | undefined): object | undefined {
  return before && next ? { ...before, ...next } : (next ?? before);
}

function withParams(message: Message, change: object): WireMessage {
  const content = contentOf(message);
  return writtenMessage({ ...content, params: { ...content.params, ...change } });
}
