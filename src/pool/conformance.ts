import { randomUUID } from 'node:crypto';
import { inspect } from 'node:util';
import { redact } from '../shared/redact.js';
import { BrowserPool } from './browser-pool.js';
import {
  errorFaults,
  recordingFaults,
  sessionFaults,
  tagFaults,
  type AnswerSamples,
} from './conformance-answers.js';
import type {
  BrowserService,
  LeaseRequest,
  ServiceRequest,
  VideoSearch,
} from '../services/browser-service.js';
import { valueAt } from '../services/service-json.js';
import { checkService } from '../services/check-service.js';
import { coreOf } from './pool-core.js';
import { sealSession } from './session.js';
import { completeRequest, entryIn, idsIn } from './tickets.js';
import { isError } from '../shared/globals.js';

/** What a service answers, for the checks of its adapter. Each part that is missing is not checked. */
export interface ServiceSample extends AnswerSamples {
  /** The JSON of a response that leases a browser. Undefined: no request is needed, the connection itself is the lease. */
  readonly response?: unknown;
  /** Id of that session. Without a response: of the lease that `serviceFaults` requests, `LEASE_ID`. */
  readonly id: string;
  /** Places of the fields without which the response is no session, with dots: `data.cdp_url`. */
  readonly required?: readonly string[];
  /** Texts in the response that must not appear in logs, errors and JSON: keys and tokens. */
  readonly secrets?: readonly string[];
  /** An answer to the search for the lease `LEASE_ID`, with this session and another one. */
  readonly found?: unknown;
}

/** Id of the lease that the checks request. */
export const LEASE_ID = '0b8f9c1e-5a3d-4e6f-8a7b-1c2d3e4f5a6b';
/** A value that no part of a URL may contain as it is. */
const HOSTILE = 'a/b ?x=1&y#z%é"\\';
/** The beginning of the end of the sentence "The response …". */
const REASON = /^(lacks|has|is) /;
const TOKEN = 'conformance-token-0123456789';
const ORIGIN = 'https://pool.example.com';
const AT = { baseUrl: new URL(`${ORIGIN}/v1/`), token: TOKEN };
const LEASE: LeaseRequest = {
  pool: HOSTILE,
  id: LEASE_ID,
  mark: 'host/1/2026-01-02T03:04:05.678Z',
  name: 'name',
  tags: { 'any key': '' },
  startUrl: 'https://example.com/?q=1',
  wait: 7,
  keepAlive: true,
  record: true,
};

/**
 * Checks an adapter of a service, without a network: its requests, what it reads from a response, its secrets, and whether
 * another process can release, recognize and find its leases.
 *
 * @returns One sentence for each fault; an empty list if there is none.
 * @example
 * ```ts
 * expect(serviceFaults(mine, { response, id: 'session-1', required: ['id', 'url'], secrets: [key] })).toEqual([]);
 * ```
 */
export function serviceFaults(service: BrowserService, sample: ServiceSample): string[] {
  try {
    checkService(service);
  } catch (error) {
    return [messageOf(error)];
  }
  // Its constructor notes the parameters that are secrets.
  poolOf(service);
  const checks = {
    requestFaults,
    secretFaults,
    grantFaults,
    refusalFaults,
    ticketFaults,
    listFaults,
    answerFaults,
  };
  const faults = Object.values(checks).flatMap((check) => {
    try {
      return [...check(service, sample)];
    } catch (error) {
      return [`A function threw: ${messageOf(error)}`];
    }
  });
  return [...new Set(faults)];
}

/** All requests of a service, by the function that builds them. */
function requestsOf({ acquire, release, owner, find, replays, sessions, probe, pool }: BrowserService) {
  const all: Record<string, ServiceRequest | null | undefined> = {
    acquire: acquire(LEASE),
    'release (reuse)': release(HOSTILE, { pool: HOSTILE, reuse: true }),
    'release (destroy)': release(HOSTILE, { pool: HOSTILE, reuse: false }),
    owner: owner?.(HOSTILE, LEASE),
    find: find?.(LEASE),
    'replays.list': replays?.list(HOSTILE),
    'replays.start': replays?.start?.(HOSTILE, { frameRate: 5, maxSeconds: 60 }),
    'replays.stop': replays?.stop?.(HOSTILE, HOSTILE),
    'replays.delete': replays?.delete?.(HOSTILE, HOSTILE),
    'replays.session': replays?.session?.request(HOSTILE),
    ...videoRequestsOf(replays?.video?.(HOSTILE, HOSTILE)),
    'sessions.list': sessions?.list(0, 0),
    probe,
    'pool.describe': pool?.describe?.(HOSTILE),
    'pool.flush': pool?.flush?.(HOSTILE),
  };
  return Object.entries(all).filter((entry): entry is [string, ServiceRequest] => Boolean(entry[1]));
}

function videoRequestsOf(video: ServiceRequest | VideoSearch | undefined) {
  if (video && 'find' in video)
    return { 'replays.video (order)': video.order, 'replays.video (find)': video.find };
  return { 'replays.video': video };
}

function* requestFaults(service: BrowserService): Iterable<string> {
  for (const [name, request] of requestsOf(service)) {
    if (JSON.stringify(asJson(request)) !== JSON.stringify(request))
      yield `The request of ${name} is not the same after JSON.`;
    const { pathname, hash, origin } = new URL(completeRequest(request, AT.baseUrl, service).url);
    if (origin !== ORIGIN || hash !== '' || !/^\/v1\/[^/]/.test(pathname))
      yield `The path of ${name} leaves the address of the service: ${request.path}`;
    if (request.path.includes('a/b'))
      yield `The path of ${name} contains an id that is not encoded. Use path.`;
    if (JSON.stringify(request).includes(TOKEN)) yield `The request of ${name} contains the token.`;
  }
  const released = JSON.stringify(service.release('an-id', { pool: 'pool', reuse: false }) ?? 'an-id');
  if (!released.includes('an-id')) yield 'The request of release does not contain the id of the session.';
}

function* grantFaults(
  service: BrowserService,
  { response, id, secrets = [] }: ServiceSample,
): Iterable<string> {
  const grant = service.grant(response, LEASE, AT);
  if (grant.id !== id) yield `grant reads the id ${grant.id}, not ${id}.`;
  if (!/^(wss?|https?):/.test(grant.cdpUrl ?? grant.bidiUrl ?? ''))
    yield 'grant reads neither a cdpUrl nor a bidiUrl.';
  const sealed = sealSession(grant) as Record<string, unknown>;
  for (const [field, value] of Object.entries(grant.session))
    if (JSON.stringify(sealed[field]) !== JSON.stringify(value)) yield `session.${field} can't be read.`;
  const shown = [sealed, { nested: [sealed] }, new Error('mine', { cause: sealed }), { ...sealed }];
  const texts = shown.flatMap((value) => [
    JSON.stringify(value),
    inspect(value, { depth: 9, showHidden: true }),
  ]);
  for (const secret of [TOKEN, ...secrets])
    if (texts.some((text) => text.includes(secret)))
      yield 'A session shows a secret: name its parameter, or its field, in secretParameters.';
}

/** The error for a response that is no session, or for a refusal that repeats the response, shows the response. */
function* secretFaults(
  _service: BrowserService,
  { response, secrets = [] }: ServiceSample,
): Iterable<string> {
  for (const secret of secrets) {
    // Values that a session had before are hidden everywhere.
    const unseen = randomUUID();
    const text = JSON.stringify(response ?? {}).replaceAll(secret, unseen);
    if (redact(text).includes(unseen))
      yield 'The error of a broken response shows a secret: name its parameter, or its field, in secretParameters.';
  }
}

/** A response that is not a session must be refused with a reason, or its browser would be lost. */
function* refusalFaults(
  service: BrowserService,
  { response, required = [] }: ServiceSample,
): Iterable<string> {
  if (response === undefined) return;
  const broken = required.flatMap((field) =>
    [undefined, null, [], {}].map((value) => [field, replaced(response, field.split('.'), value)] as const),
  );
  const none = [undefined, null, 'text', 7, [], [{}], true].map((json) => ['', json] as const);
  for (const [field, json] of [...broken, ...none]) {
    const what = field === '' ? `the response ${JSON.stringify(json)}` : `a wrong ${field}`;
    const reason = refusalOf(() => service.grant(json, LEASE, AT));
    if (reason === undefined) yield `grant accepts ${what}.`;
    else if (!REASON.test(reason))
      yield `grant refuses ${what} with a message that does not end a sentence which begins with "The response": ${reason}`;
    if (reason?.includes(TOKEN)) yield `grant refuses ${what} with a message that contains the token.`;
  }
}

function* ticketFaults(service: BrowserService, sample: ServiceSample): Iterable<string> {
  const { id, response } = sample;
  const ticket = coreOf(poolOf(service)).ticketOf(id, LEASE, true);
  if ((ticket === undefined) !== (response === undefined))
    yield 'A service needs a release request if it needs an acquire request, and only then.';
  if (!ticket) return;
  if (JSON.stringify(asJson(ticket)) !== JSON.stringify(ticket)) yield 'A release is not JSON.';
  for (const { method } of [ticket.reuse, ticket.destroy])
    if (method === 'GET') yield 'A release has the method GET.';
  if (ticket.owner && ticket.owner.method !== 'GET') yield 'The request of owner must be a GET.';
  const search = service.find?.(LEASE);
  if (!search) return;
  if (search.method !== 'GET') yield 'The request of find must be a GET.';
  if (!search.path.includes(LEASE_ID) && !search.at)
    yield 'find neither contains the id of the lease, nor says where an entry has it (at).';
  // An entry is compared as a whole: a part of a longer text never matches.
  if (!hasValue(service.acquire(LEASE), LEASE_ID))
    yield 'acquire does not contain the id of the lease as a whole value, so find can never find it. Use leaseTags, or lease.id alone.';
  if (!('found' in sample)) return;
  const where = { ...search, idField: service.idField, is: LEASE_ID };
  const ids = idsIn(sample.found, where);
  if (ids.length !== 1 || ids[0] !== id) return yield `find finds ${JSON.stringify(ids)}, not only ${id}.`;
  if (!search.isWhole) return;
  const reason = refusalOf(() => service.grant(entryIn(sample.found, id, where), LEASE, AT));
  if (reason !== undefined) yield `find says isWhole, and grant can't read the entry, which ${reason}.`;
}

function* answerFaults(service: BrowserService, sample: ServiceSample): Iterable<string> {
  const session = { id: sample.id, leaseId: LEASE_ID };
  yield* errorFaults(sample);
  yield* recordingFaults(service, sample, session);
  yield* sessionFaults(service, sample, session);
  yield* tagFaults(service, sample, session);
}

/** Lists must be read or refused. */
function* listFaults({ replays, sessions }: BrowserService, { id }: ServiceSample): Iterable<string> {
  const video = replays?.video?.(id, 'replay');
  const readers = Object.entries({
    'replays.read': replays?.read,
    'replays.session.read': replays?.session?.read,
    'replays.video read': video && 'find' in video ? video.read : undefined,
    'sessions.read': sessions?.read,
  });
  for (const [name, read] of readers) {
    if (!read) continue;
    for (const json of [null, 'text', 7]) {
      const reason = refusalOf(() => read(json, id));
      if (reason === undefined) yield `${name} accepts ${JSON.stringify(json)}.`;
      else if (!REASON.test(reason))
        yield `${name} refuses ${JSON.stringify(json)} with the message: ${reason}`;
    }
  }
}

/** Whether JSON, a part of a path or a parameter in it is exactly this text. */
function hasValue(json: unknown, text: string): boolean {
  if (typeof json === 'string') return json.split(/[/?&=]/).includes(text);
  return typeof json === 'object' && json !== null && Object.values(json).some((one) => hasValue(one, text));
}

function poolOf(service: BrowserService): BrowserPool<object> {
  return new BrowserPool('pool', { service, baseUrl: ORIGIN, token: TOKEN });
}

/** A copy of the JSON with another value at one place. */
function replaced(json: unknown, [field, ...rest]: readonly string[], value: unknown): unknown {
  if (field === undefined) return value;
  return { ...(json as object), [field]: replaced(valueAt(json, [field]), rest, value) };
}

/** What arrives in another process. */
function asJson(value: unknown): unknown {
  const text = JSON.stringify(value);
  return JSON.parse(text) as unknown;
}

/** The message of the error; undefined if there is none. */
function refusalOf(read: () => unknown): string | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

function messageOf(error: unknown): string {
  return isError(error) ? error.message : String(error);
}
