import { LinkedAbort, raceAbort } from '../shared/abort.js';
import { duration, InvalidOptionError } from '../shared/errors.js';
import { PoolConnectionError } from '../shared/service-errors.js';
import { REQUEST_TIMEOUT, type HttpClient } from './http.js';
import type { EndpointRequest } from './pool-options.js';
import { expectSuccess, readJson } from './responses.js';

/** Calls a function of the option `endpoints`, under the timeout that the default request would have. */
export async function callEndpoint<Request extends { pool: string; sessionId: string }, Result>(
  client: HttpClient,
  endpoint: (request: EndpointRequest & Request) => Result | Promise<Result>,
  request: Request,
  { timeout = REQUEST_TIMEOUT, signal }: { timeout?: number; signal?: AbortSignal | undefined },
): Promise<Result> {
  const abort = new LinkedAbort(signal, timeout);
  const facts = { pool: request.pool, sessionId: request.sessionId };
  const send: EndpointRequest['send'] = async (method, path, body) => {
    if (!path.startsWith('/'))
      throw new InvalidOptionError('path', `path must begin with a slash, not ${path}.`);
    const root = client.path();
    const sent = { method, path: root + path, body, facts, timeout, signal: abort.signal };
    const response = expectSuccess(await client.send(sent), facts);
    return response.body === '' ? undefined : readJson(response, facts);
  };
  try {
    // An async function, so that an exception of a synchronous function becomes a rejection.
    const work = async () => endpoint({ ...request, signal: abort.signal, send });
    return await raceAbort(work(), abort.signal);
  } catch (error) {
    if (!abort.timedOut) throw error;
    const message = `A function of the option endpoints did not finish within ${duration(timeout)}.`;
    throw new PoolConnectionError(message, 'ERR_POOL_NO_RESPONSE', { ...facts, cause: error });
  } finally {
    abort.dispose();
  }
}
