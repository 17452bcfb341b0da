import type { IncomingMessage } from 'node:http';
import type { Route } from '../shared/network.js';
import { portOf } from '../shared/urls.js';
import { USER_AGENT } from '../shared/version.js';
import { openConnection } from './connection.js';
import { nativeRequest } from './native-requests.js';
import { readResponse, type HttpResponse } from './response.js';

export interface HttpRequest {
  readonly url: URL;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: object | undefined;
}

export function encode({ headers, body }: HttpRequest): {
  headers: Record<string, string>;
  text: string | undefined;
} {
  const text = body && JSON.stringify(body);
  return {
    headers: {
      accept: 'application/json',
      'user-agent': USER_AGENT,
      // Selenium Grid refuses JSON without its encoding. Node would send a DELETE without the length of its body.
      ...(text && {
        'content-type': 'application/json; charset=utf-8',
        'content-length': String(Buffer.byteLength(text)),
      }),
      ...headers,
    },
    text,
  };
}

/** Some gateways add many headers. Node's limit is 16 KiB. */
export const LARGEST_HEADERS = 64 * 1024;

/** How to send one request on a connection of its own. */
interface SendOnce {
  readonly route: Route;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Sends one request on a connection of its own, and reads the response. It needs no package, so that the process that
 * releases browsers is one file.
 */
export async function sendOnce(message: HttpRequest, how: SendOnce): Promise<HttpResponse> {
  const response = await openOnce(message, how);
  return readResponse({ statusCode: response.statusCode!, headers: response.headers, body: response });
}

/** Sends one request on a connection of its own. It follows no redirect. Its response is not read yet. */
export async function openOnce(message: HttpRequest, { route, signal }: SendOnce): Promise<IncomingMessage> {
  const { url, method = 'GET' } = message;
  const connection = await openConnection(url, route, { signal });
  const { headers, text } = encode(message);
  return new Promise((resolve, reject) => {
    const options = {
      createConnection: () => connection,
      host: url.hostname,
      port: portOf(url),
      method,
      path: url.pathname + url.search,
      headers: { host: url.host, ...headers },
      maxHeaderSize: LARGEST_HEADERS,
      ...(signal && { signal }),
    };
    nativeRequest(options, resolve).on('error', reject).end(text);
  });
}
