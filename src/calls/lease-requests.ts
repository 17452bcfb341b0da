import type { IncomingMessage } from 'node:http';
import { readBody, Refusal } from '../net/loopback-server.js';
import { isPooledBrowserError, InvalidOptionError, parseTime } from '../shared/errors.js';
import { isRecord, jsonOf } from '../shared/json.js';
import type { ProxiedBrowser, ProxiedLease } from './proxied-browser.js';

const MOST_BYTES = 1024;

/**
 * Answers `GET /NAME/lease` with the facts of the lease of a named browser, and `POST /NAME/lease` with `{"extend": "10m"}` or ms with
 * those after the extension. No browser is leased for such a request.
 *
 * @throws Refusal
 */
export async function answerLease(
  request: IncomingMessage,
  name: string | undefined,
  find: () => ProxiedBrowser | undefined,
): Promise<ProxiedLease & { readonly name: string | undefined; readonly notice?: string }> {
  const { method = '' } = request;
  if (!['GET', 'HEAD', 'POST'].includes(method)) throw new Refusal(405, 'This path allows GET and POST.');
  const extension = method === 'POST' ? await readExtension(request) : undefined;
  const browser = find();
  const facts = browser?.lease;
  if (!browser || !facts) throw new Refusal(404, 'No browser of this name is leased.');
  if (extension === undefined) return { name, ...facts };
  if (facts.remaining === undefined) throw new Refusal(409, NO_LIFETIME);
  try {
    const { remaining, isCut } = browser.extend(extension);
    return { name, ...facts, remaining, ...(isCut && { notice: LATEST }) };
  } catch (error) {
    if (error instanceof InvalidOptionError) throw new Refusal(400, error.message);
    throw isPooledBrowserError(error) ? new Refusal(410, error.message) : error;
  }
}

async function readExtension(request: IncomingMessage): Promise<number> {
  const body = jsonOf(await readBody(request, MOST_BYTES));
  if (!isRecord(body) || Object.keys(body).join() !== 'extend') throw new Refusal(400, BODY);
  const { extend } = body;
  // `extend` of the lease refuses what is no number of milliseconds.
  return typeof extend === 'string' ? (parseTime(extend) ?? Number.NaN) : (extend as number);
}

const BODY = 'The body must be {"extend": MILLISECONDS} or {"extend": "10m"}, as JSON.';
export const LATEST =
  'The lease ends at its latest time (maxLifetime, --max-lifetime): it was extended by less, or not at all.';
const NO_LIFETIME =
  'The lease has no end to move: start the proxy with --lifetime, or with the option lifetime of serveProxy.';
