import * as v from 'valibot';
import { isRecord, parseJson } from '../shared/json.js';
import { pausedWithoutBody, withoutContent } from './large-message.js';
import { CHECKED, COMMANDS, EVENTS, isChecked, RESULTS } from './message-fields.js';
import { partOf, type Frame } from './wire.js';

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

/** The parts of every message. What a peer sends is checked here, and nowhere else. */
const envelope = v.object({
  // WebDriver BiDi has errors of messages that have no id.
  id: v.optional(
    v.pipe(
      v.nullable(v.number()),
      v.transform((id) => id ?? undefined),
    ),
  ),
  method: v.optional(v.pipe(v.string(), v.regex(WITH_DOMAIN))),
  sessionId: v.optional(v.string()),
  params: v.optional(v.custom<Record<string, unknown>>(isRecord)),
  result: v.optional(v.unknown()),
  error: v.optional(v.unknown()),
});

/** A command, a response or an event of CDP or WebDriver BiDi. */
export type Message = v.InferOutput<typeof envelope>;

/** A message, a result or an event that is not what the protocol says. */
export class MisfitError extends Error {}

/** @throws MisfitError; SyntaxError if the message is not JSON. */
export function readMessage(data: string | Frame): Message {
  const paused = pausedWithoutBody(data);
  const message = read(envelope, parseJson(paused?.text ?? String(data)), 'message');
  const { request } = (paused && message.params) ?? {};
  if (isRecord(request)) Object.assign(request, { postDataEntries: paused!.parts() });
  return message;
}

/** Which command, response or event a message is. */
export interface Envelope extends Pick<Message, 'id' | 'method' | 'sessionId'> {
  /** The session that has ended. */
  readonly detached?: string | undefined;
  /** What begins with this event, and can't begin again unless it ends. */
  readonly begins?: string | undefined;
  /** What ends with it; with all parts if it ends with a space. */
  readonly ends?: string | undefined;
  /** A response for a session that the browser no longer has. Chromium omits the id of the session. */
  readonly isOfNoSession?: boolean;
  /** An event without what the protocol says: a library would throw where nobody can catch it. */
  readonly isMisfit?: boolean;
}

const NO_SESSION = -32_001;

/**
 * Reads what a message is. The whole message is parsed: what stands at its beginning can be replaced at its end.
 *
 * @returns undefined for what is neither a response nor an event: libraries throw an uncaught exception then.
 * @throws MisfitError if the parts of a message are not what the protocol says; SyntaxError if it is not JSON.
 */
export function readEnvelope(data: string | Frame): Envelope | undefined {
  // Names and ids have no characters beyond ASCII, and the rest is not read.
  const message: unknown = JSON.parse(
    withoutContent(data) ?? pausedWithoutBody(data)?.text ?? partOf(data, 0),
  );
  if (!isRecord(message)) throw misfit('message', 'value');
  const { method, params, type, error } = message;
  // A service can send null for what a message does not have.
  const id = message['id'] ?? undefined;
  const sessionId = message['sessionId'] ?? undefined;
  if (id !== undefined && typeof id !== 'number') throw misfit('message', 'id');
  if (method !== undefined && !(typeof method === 'string' && WITH_DOMAIN.test(method)))
    throw misfit('message', 'method');
  if (sessionId !== undefined && typeof sessionId !== 'string') throw misfit('message', 'sessionId');
  if (params !== undefined && !isRecord(params)) throw misfit('message', 'params');
  // WebDriver BiDi has types of messages, and errors without an id.
  if (type === 'event' && (method === undefined || params === undefined)) return undefined;
  if (id === undefined && method === undefined && (type !== 'error' || error === undefined)) return undefined;
  const ended = method === 'Target.detachedFromTarget' ? params?.['sessionId'] : undefined;
  return {
    id,
    method,
    sessionId,
    detached: typeof ended === 'string' ? ended : undefined,
    ...lifeOf(method, params, sessionId),
    isOfNoSession: isRecord(error) && error['code'] === NO_SESSION,
    isMisfit: isChecked(method) && !v.is(CHECKED[method]!, params),
  };
}

/** What begins or ends with an event: a session of the connection, which begins once, or a frame of a session. */
function lifeOf(
  method: string | undefined,
  params: Readonly<Record<string, unknown>> = {},
  session = '',
): Pick<Envelope, 'begins' | 'ends'> {
  const frames = `frame ${session} `;
  const named = (field: string) => JSON.stringify(params[field]);
  switch (method) {
    // No session has the id of an earlier one.
    case 'Target.attachedToTarget':
      return { begins: `session ${named('sessionId')}` };
    case 'Page.frameAttached':
      return { begins: `${frames}${named('frameId')}` };
    case 'Page.frameDetached':
      return { ends: `${frames}${named('frameId')}` };
    // The frames of the document before it end without an event.
    case 'Page.frameNavigated':
      return recordIn(params['frame'])['parentId'] === undefined ? { ends: frames } : {};
    default:
      return {};
  }
}

function recordIn(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

/** Whether this library reads an event. */
export function isRead(name: string | undefined): name is EventName {
  return name !== undefined && Object.hasOwn(EVENTS, name);
}

/** @throws MisfitError */
export function readEvent<Name extends EventName>(name: Name, params: unknown): EventParams<Name> {
  return read(EVENTS[name], params, `event ${name}`) as EventParams<Name>;
}

/** @throws MisfitError */
export function readResult<Method extends string>(method: Method, result: unknown): ResultOf<Method> {
  const schema = Object.hasOwn(RESULTS, method) ? RESULTS[method as keyof typeof RESULTS] : v.unknown();
  return read(schema, result, `result of ${method}`) as ResultOf<Method>;
}

/** @throws MisfitError */
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
  throw misfit(what, place);
}

function misfit(what: string, place: string): MisfitError {
  return new MisfitError(`The browser sent a ${what} that can not be read: ${place} is not valid.`);
}
