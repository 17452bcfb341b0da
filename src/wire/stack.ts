import { clock } from '../shared/clock.js';
import type { AnyClient, Frame, Message, WireMessage } from './forms.js';
import type { Answer, Command, CommandHandler, EventHandler, Layer, LayerStack } from './layer.js';
import {
  BrowserFault,
  contentOf,
  isCommandName,
  isRead,
  NoAnswer,
  readCommand,
  readEvent,
  readResult,
  writtenMessage,
} from './message.js';
import type { Sessions } from './sessions.js';

export class BrowserAnswer implements Answer {
  readonly message: WireMessage;
  readonly #method: string;

  constructor(method: string, message: WireMessage) {
    this.#method = method;
    this.message = message;
  }

  get result(): unknown {
    return readResult(this.#method, contentOf(this.message).result);
  }

  /** What the client receives: the answer as it came, if no layer has changed it. */
  messageFor(_command: Message): WireMessage {
    return this.message;
  }

  with(changes: object): BrowserAnswer {
    const content = contentOf(this.message);
    const result = { ...(content.result as object), ...changes };
    return new BrowserAnswer(this.#method, writtenMessage({ ...content, result }));
  }
}

/** A layer has answered in the place of the browser. */
class GivenAnswer implements Answer {
  readonly result: object;

  constructor(result: object) {
    this.result = result;
  }

  messageFor({ id, sessionId }: Message): WireMessage {
    return writtenMessage({ id, result: this.result, sessionId });
  }

  with(changes: object): GivenAnswer {
    return new GivenAnswer({ ...this.result, ...changes });
  }
}

type StackAnswer = BrowserAnswer | GivenAnswer;

/** Names that are remembered with their handlers: a client can send any. */
const MOST_NAMES = 2000;
const NONE: readonly never[] = [];

/** The layers of all connections to one browser. */
export class Stack implements LayerStack {
  readonly #first: Layer[] = [];
  readonly #between: Layer[] = [];
  readonly #limits: Layer[] = [];
  readonly #ofCommands = new Map<string, readonly CommandHandler[]>();
  readonly #ofEvents = new Map<string, readonly EventHandler[]>();

  add(...layers: readonly Layer[]): void {
    this.#add(this.#between, layers);
  }

  addFirst(...layers: readonly Layer[]): () => void {
    this.#add(this.#first, layers);
    return () => {
      for (const layer of layers) this.#first.splice(this.#first.indexOf(layer), 1);
      this.#forget();
    };
  }

  addLimits(...layers: readonly Layer[]): void {
    this.#add(this.#limits, layers);
  }

  #add(list: Layer[], layers: readonly Layer[]): void {
    list.push(...layers);
    this.#forget();
  }

  #forget(): void {
    this.#ofCommands.clear();
    this.#ofEvents.clear();
  }

  /** A layer limits what clients can do. */
  get isLimit(): boolean {
    return this.#limits.length > 0;
  }

  /** The layers, from the clients to the browser. */
  get #layers(): readonly Layer[] {
    return [...this.#first, ...this.#between, ...this.#limits];
  }

  /** The handlers of a command, from the client to the browser. */
  commandHandlers(method: string | undefined): readonly CommandHandler[] {
    if (method === undefined) return NONE;
    return remembered(this.#ofCommands, method, () =>
      this.#layers.flatMap(({ commands = {} }) =>
        [commands['*'], own(commands, method)].flatMap((one) => (one as CommandHandler | undefined) ?? []),
      ),
    );
  }

  /** The handlers of an event, from the browser to the client. */
  eventHandlers(method: string | undefined): readonly EventHandler[] {
    if (method === undefined) return NONE;
    return remembered(this.#ofEvents, method, () =>
      this.#layers.toReversed().flatMap(({ events = {} }) => (own(events, method) as EventHandler) ?? []),
    );
  }

  /**
   * Lets a command pass the layers.
   *
   * @param send Sends it, with the parameters that differ.
   * @throws MalformedMessage if the command is not what the protocol says.
   */
  command(
    message: Message,
    handlers: readonly CommandHandler[],
    { client, sessions, send }: DispatchOptions,
  ): Promise<StackAnswer> {
    const { method = '', sessionId, params = {} } = message;
    const read = isCommandName(method) ? (one: object) => readCommand(method, one) : (one: object) => one;
    const first = read(params);
    const session = sessions.get(sessionId);
    const step = (at: number, changes: object | undefined, checked: object): Promise<StackAnswer> => {
      const handler = handlers[at];
      if (!handler) return send(changes);
      let passed: Promise<StackAnswer> | undefined;
      const next = (more?: object): Promise<StackAnswer> => {
        if (passed) throw new Error('next can be called once.');
        const all = more ? { ...changes, ...more } : changes;
        passed = step(at + 1, all, more ? read({ ...params, ...all }) : checked);
        return passed;
      };
      const command: Command = { method, params: checked, sessionId, session, client };
      try {
        const given = handler(command, next);
        // Most layers return what they got.
        if (passed && given === passed) return passed;
        return Promise.resolve(given).then(asAnswer);
      } catch (error) {
        return Promise.reject(error);
      }
    };
    return step(0, undefined, first);
  }

  /**
   * Lets an event pass the layers, to a client.
   *
   * @param deliver Receives it, with the parameters that differ.
   * @throws MalformedMessage
   */
  event(
    message: WireMessage,
    handlers: readonly EventHandler[],
    { client, sessions, deliver }: DeliverOptions,
  ): void | Promise<void> {
    const { method = '', sessionId } = message;
    // A layer reads no body of a request: decoding a large one would cost each client that changes requests much time.
    const read = method === 'Fetch.requestPaused' ? message : contentOf(message);
    const params = isRead(method) ? readEvent(method, read.params) : {};
    const session = sessions.get(sessionId);
    const emit = (name: string, about: object) =>
      void clock.setImmediate(() =>
        client.receive(writtenMessage({ method: name, params: about, sessionId })),
      );
    const step = (at: number, changes: object | undefined): void | Promise<void> => {
      const handler = handlers[at];
      if (!handler) return deliver(changes);
      const now = changes ? { ...params, ...changes } : params;
      const event = { method, params: now, sessionId, session, client, emit };
      return handler(event, (more) => step(at + 1, more ? { ...changes, ...more } : changes));
    };
    return step(0, undefined);
  }
}

interface DispatchOptions {
  readonly client: AnyClient;
  readonly sessions: Sessions;
  readonly send: (changes: object | undefined) => Promise<BrowserAnswer>;
}

interface DeliverOptions {
  readonly client: AnyClient;
  readonly sessions: Sessions;
  readonly deliver: (changes: object | undefined) => void | Promise<void>;
}

function asAnswer(given: Answer | object): StackAnswer {
  return given instanceof BrowserAnswer || given instanceof GivenAnswer ? given : new GivenAnswer(given);
}

/** The error that a client receives; undefined if nobody waits. */
export function faultFor({ id, method = '', sessionId }: Message, error: unknown): WireMessage | undefined {
  if (error instanceof NoAnswer) return undefined;
  if (error instanceof BrowserFault) return error.answer;
  const { message } = error as Error;
  // The methods of WebDriver BiDi begin with a small letter.
  const what = /^[A-Z]/.test(method)
    ? { error: { code: -32_000, message } }
    : { type: 'error', error: 'invalid argument', message };
  return writtenMessage({ id, ...what, sessionId });
}

export function withParams(
  message: WireMessage<string | Frame>,
  changes: object,
): WireMessage<string | Frame> {
  const content = contentOf(message);
  return writtenMessage({ ...content, params: { ...content.params, ...changes } });
}

function own(table: object, name: string): unknown {
  return Object.hasOwn(table, name) ? (table as Record<string, unknown>)[name] : undefined;
}

function remembered<Value>(known: Map<string, Value>, name: string, find: () => Value): Value {
  const one = known.get(name);
  if (one) return one;
  const found = find();
  if (known.size < MOST_NAMES) known.set(name, found);
  return found;
}
