import * as v from 'valibot';
import { isRecord, jsonOf, recordOf } from '../shared/json.js';
import { excerpt } from '../shared/redact.js';
import { shortened } from './large-message.js';
import { CHECKED, COMMANDS, EVENTS, RESULTS } from './message-fields.js';
import { textOf, type Frame, type Message, type WireMessage } from './forms.js';

type Read<Table extends Record<string, v.GenericSchema>, Name> = Name extends keyof Table
  ? v.InferOutput<Table[Name]>
  : unknown;

export type EventName = keyof typeof EVENTS;
export type EventParams<Name extends EventName = EventName> = Read<typeof EVENTS, Name>;
/** `unknown` for a command whose result nobody reads. */
export type ResultOf<Method extends string> = Read<typeof RESULTS, Method>;
/** A frame of a page, with those in it. */
export type FrameTree = ResultOf<'Page.getFrameTree'>['frameTree'];
export type CommandName = keyof typeof COMMANDS;
export type CommandParams<Name extends CommandName> = Read<typeof COMMANDS, Name>;

/** An event `error` would make Node's emitters throw. */
const WITH_DOMAIN = /^[\w:]+\.[\w.:]+$/;

/** Thrown for a message, a result or an event that is not what the protocol says. */
export class MalformedMessage extends Error {}

/** The session or the connection has ended before the browser answered: nobody waits for the result. */
export class NoAnswer extends Error {
  constructor() {
    super('The WebSocket or the session has ended.');
  }
}

/** The browser has answered a command with an error. A layer that does not catch it passes the answer on as it came. */
export class BrowserFault extends Error {
  readonly answer: WireMessage;

  /** @throws MalformedMessage */
  constructor(answer: WireMessage) {
    const { error } = contentOf(answer);
    // The error of WebDriver BiDi is a text.
    const said = isRecord(error) ? error['message'] : `The command failed: ${String(error)}.`;
    super(typeof said === 'string' ? excerpt(said, 1000) : 'The command failed.');
    this.answer = answer;
  }
}

/**
 * Reads a message. The content of a large one is left out, for `contentOf`.
 *
 * @throws MalformedMessage
 */
export function readMessage<Data extends string | Frame>(data: Data): WireMessage<Data> {
  const short = shortened(data);
  const message = short ? asMessage(jsonOf(short.text), data) : parseMessage(data);
  if (message.malformed) throw message.malformed;
  return short
    ? { ...message, readContent: () => short.addContent?.(message) ?? wholeMessage(data) }
    : message;
}

/** Reads a whole message, also one that is none. */
export function parseMessage<Data extends string | Frame>(data: Data): WireMessage<Data> {
  return asMessage(jsonOf(textOf(data)), data);
}

/** Whether a part of a whole message, also of one that was left out, is not what the protocol says. */
export function isMalformed({ data }: WireMessage): boolean {
  return parseMessage(data).malformed !== undefined;
}

/** The form of a message that was parsed elsewhere. */
export function parsedMessage(value: object): WireMessage {
  return asMessage(value, NOTHING);
}

const NOTHING = Buffer.alloc(0);

/** @throws MalformedMessage */
function wholeMessage(data: string | Frame): Message {
  const message = parseMessage(data);
  if (message.malformed) throw message.malformed;
  return message;
}

export function writtenMessage(message: object): WireMessage {
  return asMessage(message, Buffer.from(JSON.stringify(message)));
}

/** Returns all that a message contains, without what no protocol has. */
export function contentOf(message: Message): Message {
  const { type, id, method, params, result, error, sessionId } = message.readContent?.() ?? message;
  return { type, id, method, params, result, error, sessionId };
}

/** The parts of every message. What a peer sends is checked here, and nowhere else. */
function asMessage<Data extends string | Frame>(value: unknown, data: Data): WireMessage<Data> {
  const { type, id, method, params, result, error, sessionId } = isRecord(value) ? value : {};
  const message = {
    data,
    type,
    id: typeof id === 'number' ? id : undefined,
    method: typeof method === 'string' && WITH_DOMAIN.test(method) ? method : undefined,
    params: isRecord(params) ? params : undefined,
    result,
    error,
    sessionId: typeof sessionId === 'string' && sessionId !== '' ? sessionId : undefined,
  };
  // A service can send null for what a message does not have. For the browser, an empty id means no session.
  const wrong =
    (!isRecord(value) && 'value') ||
    ((id ?? undefined) !== message.id && 'id') ||
    (method !== message.method && 'method') ||
    (params !== message.params && 'params') ||
    ((sessionId || undefined) !== message.sessionId && 'sessionId');
  return wrong ? { ...message, malformed: malformed('message', wrong) } : message;
}

/**
 * Expects that a library takes a message with an id for a response, and that the texts of an error are texts: both would make it throw
 * where nobody can catch it.
 *
 * @returns Whether it is an error.
 * @throws MalformedMessage
 */
export function expectResponse({ id, type, method, error, data }: WireMessage): boolean {
  const isEvent = CHECKED.has(method) || ![undefined, 'success', 'error'].includes(type as undefined);
  if (id !== undefined && isEvent) throw malformed('response', 'method');
  if (error === undefined) return false;
  // WebDriver BiDi has the texts beside the name of the error. An object can have a `toString` that is none.
  const { message, stacktrace } = type === undefined ? {} : recordOf(textOf(data));
  const parts = isRecord(error) ? Object.values(error) : [error];
  try {
    [...parts, error, message, stacktrace].forEach(String);
  } catch {
    throw malformed('response', 'error');
  }
  return true;
}

/** Whether an event is what the protocol says: otherwise a library would throw where nobody can catch it. */
export function fits({ method, params }: Message): boolean {
  const schema = CHECKED.get(method);
  return !schema || v.is(schema, params);
}

export function isRead(name: string | undefined): name is EventName {
  return name !== undefined && Object.hasOwn(EVENTS, name);
}

/** Whether this library reads a command. */
export function isCommandName(name: string): name is CommandName {
  return Object.hasOwn(COMMANDS, name);
}

/** @throws MalformedMessage */
export function readEvent<Name extends EventName>(name: Name, params: unknown): EventParams<Name> {
  return read(EVENTS[name], params, `event ${name}`) as EventParams<Name>;
}

/** @throws MalformedMessage */
export function readResult<Method extends string>(method: Method, result: unknown): ResultOf<Method> {
  const schema = Object.hasOwn(RESULTS, method) ? RESULTS[method as keyof typeof RESULTS] : v.unknown();
  return read(schema, result, `result of ${method}`) as ResultOf<Method>;
}

/** @throws MalformedMessage */
export function readCommand<Name extends CommandName>(name: Name, params: unknown): CommandParams<Name> {
  return read(COMMANDS[name], params, `command ${name}`) as CommandParams<Name>;
}

function read<Schema extends v.GenericSchema>(
  schema: Schema,
  value: unknown,
  what: string,
): v.InferOutput<Schema> {
  const { success, output, issues } = v.safeParse(schema, value, { abortEarly: true });
  if (success) return output;
  // The value itself can be anything, also a secret.
  const place = v.getDotPath(issues[0]) ?? 'value';
  throw malformed(what, place);
}

function malformed(what: string, place: string): MalformedMessage {
  return new MalformedMessage(`The ${what} can not be read: ${place} is not valid.`);
}
