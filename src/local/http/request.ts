import type { IncomingMessage } from 'node:http';
import { InvalidOptionError } from '../../shared/errors.js';
import { isRecord, parseJson } from '../../shared/json.js';
import { isSameSecret, sourceFault } from '../../net/loopback-server.js';
import { readOption, type Check, type Checked, type Checks } from '../../shared/options.js';
import { badRequest, HttpFault, notFound } from './answer.js';

/** @internal A request, as its route receives it. */
export interface RouteCall {
  readonly request: IncomingMessage;
  readonly id: string;
  /** The second id in the path; empty in paths with one id. */
  readonly replayId: string;
  /** Aborts when the client closes its connection. */
  readonly signal: AbortSignal;
}

/**
 * @internal Refuses requests from pages of other origins.
 *
 * @param host `127.0.0.1:<port>` of this server.
 * @param servesExtensions The caller checks the extension of a request itself.
 * @throws HttpFault 403
 */
export function checkSource({ headers }: IncomingMessage, host: string, servesExtensions = false): void {
  const fault = sourceFault(headers, host, servesExtensions);
  if (fault !== undefined) throw new HttpFault(403, 'forbidden', fault);
}

/** @internal Method of a request. HEAD counts as GET: the answer is sent without its body. */
export function methodOf({ method }: IncomingMessage): string | undefined {
  return method === 'HEAD' ? 'GET' : method;
}

/** @internal URL of a request. @throws HttpFault 404 when the request has no valid URL */
export function urlOf({ url = '/' }: IncomingMessage): URL {
  const base = 'http://127.0.0.1';
  if (URL.canParse(url, base)) return new URL(url, base);
  throw notFound('There is no such path.');
}

/** @internal Requires `Authorization: Bearer <token>`. @throws HttpFault 401 */
export function checkToken({ headers }: IncomingMessage, token: string): void {
  const sent = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1];
  if (sent !== undefined && isSameSecret(sent, token)) return;
  throw new HttpFault(401, 'unauthorized', 'The access token is missing or wrong.', {
    headers: { 'www-authenticate': 'Bearer' },
  });
}

/** Fields of a body that have no check: `drop` them, as the public service does, or `refuse` the request. */
type UnknownFields = 'drop' | 'refuse';

/**
 * @internal Reads a JSON body. An empty body counts as an empty object.
 *
 * @throws HttpFault 400 with one detail for each wrong field, or 413.
 */
export async function readBody<C extends Checks>(
  request: IncomingMessage,
  checks: C,
  unknown: UnknownFields = 'drop',
): Promise<Checked<C>> {
  const text = await readText(request);
  const body = text.trim() === '' ? {} : parse(text);
  if (!isRecord(body)) throw badRequest('The body must be a JSON object.', ['body must be an object.']);
  return readFields(checks, body, unknown);
}

export function readFields<C extends Checks>(checks: C, body: object, unknown?: UnknownFields): Checked<C> {
  const given = body as Record<string, unknown>;
  const extra =
    unknown === 'refuse' ? Object.keys(given).filter((field) => !Object.hasOwn(checks, field)) : [];
  const wrong = extra.map((field) => `${field} is unknown. Known fields: ${Object.keys(checks).join(', ')}.`);
  const checked = Object.entries(checks).map(([field, check]) => {
    const own = Object.hasOwn(given, field) ? given[field] : undefined;
    return [field, readField(check, field, own, wrong)] as const;
  });
  if (wrong.length > 0) throw badRequest('The request is not valid.', wrong);
  return Object.fromEntries(checked.filter(([, value]) => value !== undefined)) as Checked<C>;
}

function readField(check: Check, field: string, given: unknown, wrong: string[]): unknown {
  try {
    return readOption(check, field, given);
  } catch (error) {
    if (!(error instanceof InvalidOptionError)) throw error;
    wrong.push(error.message);
    return undefined;
  }
}

/** In bytes. The bodies of the API are far smaller. */
const MOST_BYTES = 1024 * 1024;

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // By default, the early end of the loop would destroy the socket before the client receives the response.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MOST_BYTES) throw tooLarge(request);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** The rest of the body is read and dropped: a client reads the response only after it has sent everything. */
function tooLarge(request: IncomingMessage): HttpFault {
  request.resume();
  const message = `The body is larger than ${MOST_BYTES} bytes.`;
  return new HttpFault(413, 'payload_too_large', message, { headers: { connection: 'close' } });
}

function parse(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    throw badRequest('The body is not JSON.', ['body must be JSON.']);
  }
}
