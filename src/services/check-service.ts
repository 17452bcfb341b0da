import { InvalidOptionError } from '../shared/errors.js';
import { isRecord } from '../shared/json.js';
import { hideProxy } from '../shared/network.js';
import type {
  BrowserService,
  FieldsOf,
  LeaseFault,
  LeaseRequest,
  ServiceRequest,
  SessionFields,
  SessionOptions,
} from './browser-service.js';

const SAMPLE: LeaseRequest = { pool: 'pool', id: 'id', wait: 1, keepAlive: false, record: false };

/**
 * Checks the functions of a service once: their requests must be JSON, because another process may send them.
 *
 * @throws InvalidOptionError
 */
export function checkService(service: unknown): asserts service is BrowserService {
  const fail = (fault: string): never => {
    throw new InvalidOptionError('service', `service ${fault}. See pooled-browser/services.`);
  };
  if (!isService(service)) return fail('must be an object, such as kernel');
  const { acquire, grant, release, owner, find } = service as Partial<BrowserService>;
  for (const [name, value] of Object.entries({ acquire, grant, release }))
    if (typeof value !== 'function') fail(`has no function ${name}`);
  for (const name of ['name', 'idField', 'waits'] as const)
    if (typeof service[name] !== 'string') fail(`has no text ${name}`);
  const { keepAlive } = service;
  if (keepAlive !== undefined && !(Number.isInteger(keepAlive) && Number(keepAlive) > 0))
    fail('has a keepAlive that is not a positive integer, in ms');
  const fault = headersFault(service['headers']);
  if (fault !== undefined) fail(`has ${fault}`);
  const requests = {
    acquire: acquire!(SAMPLE),
    release: release!('id', { pool: 'pool', reuse: true }),
    owner: owner?.('id', SAMPLE),
    find: find?.(SAMPLE),
  };
  for (const [name, request] of Object.entries(requests)) {
    if (request && !request.path.startsWith('/'))
      fail(`${name} returns a path without a slash at its beginning`);
    if (request && !isJson(request)) fail(`${name} returns a request that is not JSON`);
  }
}

/** A service that can be called with its options is a function with the properties of a service. */
function isService(value: unknown): value is Record<string, unknown> {
  return isRecord(value) || typeof value === 'function';
}

/** Names of headers, without those that belong to one request or connection. */
const HEADER_NAME =
  /^(?!(?:host|connection|upgrade|content-length|transfer-encoding|sec-websocket-.*)$)[\w!#$%&'*+.^`|~-]+$/i;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Returns why a value can't be the headers of a service or of a browser; `undefined` if it can. It shows no value. */
export function headersFault(headers: unknown): string | undefined {
  if (headers === undefined) return undefined;
  if (!isRecord(headers)) return 'headers that are not an object';
  const wrong = Object.entries(headers).find(
    ([name, value]) => !HEADER_NAME.test(name) || typeof value !== 'string' || !HEADER_VALUE.test(value),
  );
  return wrong && `a header ${JSON.stringify(wrong[0])} that can't be sent`;
}

/**
 * Refuses, before anything is sent, a name and tags that a service can't store, and options that it has not.
 *
 * @throws InvalidOptionError
 */
export function verifyLease(
  service: Pick<BrowserService, 'name' | 'refuses' | 'sessionOptions'>,
  lease: Pick<LeaseRequest, 'name' | 'tags' | 'sessionOptions'>,
  pool: string,
): void {
  const { proxy } = lease.sessionOptions ?? {};
  if (typeof proxy === 'string') hideProxy(proxy);
  const fault = service.refuses?.(lease) ?? sessionFault(service, lease.sessionOptions);
  if (fault) throw new InvalidOptionError(fault.option, fault.reason, { pool });
}

/** The request that leases a browser with what the call wants; `undefined` if none is needed. */
export function acquireRequest(service: BrowserService, lease: LeaseRequest): ServiceRequest | undefined {
  const request = service.acquire(lease);
  if (!request || !lease.sessionOptions) return request;
  return {
    ...request,
    body: withSessionFields(request.body ?? {}, service.sessionOptions, lease.sessionOptions),
  };
}

/** Why a service can't give a session what a call wants. */
function sessionFault(
  service: Pick<BrowserService, 'name' | 'sessionOptions'>,
  wanted: SessionOptions = {},
): LeaseFault | undefined {
  for (const [name, value] of Object.entries(wanted)) {
    const fields =
      value === undefined ? {} : fieldsOf(service.sessionOptions, name as keyof SessionOptions, value);
    if (typeof fields !== 'string') continue;
    const option = `sessionOptions.${name}`;
    return { option, reason: `The service ${service.name} can't do what ${option} asks, because ${fields}.` };
  }
  return undefined;
}

/** Puts the fields for what a call wants over those of a request. */
export function withSessionFields(
  create: object,
  words: SessionFields | undefined,
  wanted: SessionOptions = {},
): object {
  const all = Object.entries(wanted).filter(([, value]) => value !== undefined);
  return all.reduce<object>((body, [name, value]) => {
    const fields = fieldsOf(words, name as keyof SessionOptions, value);
    return typeof fields === 'string' ? body : merged(body, fields);
  }, create);
}

function fieldsOf(
  words: SessionFields | undefined,
  name: keyof SessionOptions,
  value: unknown,
): object | string {
  if (typeof words === 'string') return words;
  const fields = words?.[name] ?? 'it has nothing like it';
  return typeof fields === 'string' ? fields : (fields as FieldsOf<unknown>)(value);
}

/** The second object over the first, and their objects likewise. */
function merged(below: object, above: object): object {
  const all: Record<string, unknown> = { ...below };
  for (const [name, value] of Object.entries(above)) {
    const under = all[name];
    all[name] = isRecord(under) && isRecord(value) ? merged(under, value) : value;
  }
  return all;
}

/** What the acquire request of a service shows about it. */
interface RequestFacts {
  /** A browser is leased by a request, and not by the connection alone. */
  readonly hasAcquireRequest: boolean;
  /** The service itself opens the URL of `LeaseRequest.startUrl`: its acquire request contains it. */
  readonly opensStartUrl: boolean;
}

const requestFacts = new WeakMap<BrowserService, RequestFacts>();

/** Reads the facts from a request for an example, once for each service. */
export function requestFactsOf(service: BrowserService): RequestFacts {
  const known = requestFacts.get(service);
  if (known) return known;
  const startUrl = 'https://start.example.com/';
  const request = service.acquire({ ...SAMPLE, startUrl });
  const facts = {
    hasAcquireRequest: request !== undefined,
    opensStartUrl: JSON.stringify(request ?? '').includes(startUrl),
  };
  requestFacts.set(service, facts);
  return facts;
}

function isJson(value: unknown): boolean {
  if (Array.isArray(value)) return value.every(isJson);
  if (typeof value === 'number') return Number.isFinite(value);
  if (!isRecord(value)) return value === null || ['string', 'boolean', 'undefined'].includes(typeof value);
  const prototype: unknown = Object.getPrototypeOf(value);
  return (prototype === Object.prototype || prototype === null) && Object.values(value).every(isJson);
}
