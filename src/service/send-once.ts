import { request, type IncomingMessage } from 'node:http';
import type { Route } from '../shared/network.js';
import { openConnection } from './connection.js';
import { readBody } from './response-body.js';
import type { HttpResponse } from './response.js';

interface OnceRequest {
  readonly url: URL;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: object | undefined;
}

/** Sends one request on a connection of its own. It follows no redirect. Rejects if no response arrives. */
export async function sendOnce(
  { url, method = 'GET', headers, body }: OnceRequest,
  { route, signal }: { route: Route; signal?: AbortSignal | undefined },
): Promise<HttpResponse> {
  const connection = await openConnection(url, route, { signal });
  const text = body && JSON.stringify(body);
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request(
      {
        createConnection: () => connection,
        method,
        path: url.pathname + url.search,
        headers: {
          host: url.host,
          accept: 'application/json',
          // Node would send a DELETE without the length of its body.
          ...(text && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
          ...headers,
        },
        ...(signal && { signal }),
      },
      resolve,
    );
    sent.on('error', reject).end(text);
  });
  const { statusCode: status = 0, headers: received } = response;
  return { status, headers: received, ...(await readBody(response, received)) };
}
