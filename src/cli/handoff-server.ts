import { HandoffRequests } from '../calls/handoff-request.js';
import type { HandoffAnswer } from '../features/handoff/options.js';
import { createLoopbackServer, isSameSecret, listenOnLoopback, sourceFault } from '../net/loopback-server.js';

/** The address at which a command asks for a person. */
interface HandoffAddress extends AsyncDisposable {
  readonly url: string;
}

/** Opens the address. @param ask The signal aborts when the command no longer waits. */
export async function openHandoffAddress(
  ask: (options: unknown, signal: AbortSignal | undefined) => Promise<HandoffAnswer>,
): Promise<HandoffAddress> {
  const requests = new HandoffRequests(ask);
  const { server, trust, cut } = createLoopbackServer();
  const path = `/${globalThis.crypto.randomUUID()}`;
  const host = await listenOnLoopback(server);
  server.on('request', (request, response) => {
    const isKnown = isSameSecret(request.url ?? '', path);
    if (sourceFault(request.headers, host) !== undefined || !isKnown)
      return void response.writeHead(404).end();
    trust(request.socket);
    const gone = new AbortController();
    response.once('close', () => gone.abort(new Error('The command no longer waits.')));
    void requests.answer(request, gone.signal).then(({ status, body }) => {
      response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' });
      response.end(JSON.stringify(body));
    });
  });
  return {
    url: `http://${host}${path}`,
    [Symbol.asyncDispose]: async () => {
      server.close();
      cut();
    },
  };
}
