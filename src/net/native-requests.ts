import http, { type ClientRequestArgs, type IncomingMessage } from 'node:http';
import https from 'node:https';
import { runtime } from '../shared/runtime.js';

/**
 * Node's own class of requests. nock, msw and others replace `http.request` and `http.ClientRequest` in the whole process: their
 * requests ignore `createConnection`, and with it the proxy and the certificates of a pool.
 */
const NativeRequest = findNative();

function findNative(): typeof http.ClientRequest {
  let { prototype } = http.ClientRequest;
  // A replacement can be a class that extends Node's.
  for (;;) {
    const parent = Object.getPrototypeOf(prototype) as typeof prototype | null;
    if (parent === null) return http.ClientRequest;
    if (parent === (http.OutgoingMessage.prototype as object)) return constructorOf(prototype);
    prototype = parent;
  }
}

function constructorOf(prototype: object): typeof http.ClientRequest {
  return prototype.constructor as typeof http.ClientRequest;
}

/** Whether a library replaces `http.request` in this process now. */
export function hasReplacedRequests(): boolean {
  return runtime.name === 'Node' && !String(http.request).includes('new ClientRequest(');
}

/** The same as `http.request`, without the libraries of tests that replace it. */
export function nativeRequest(
  options: ClientRequestArgs,
  onResponse?: (response: IncomingMessage) => void,
): http.ClientRequest {
  return new NativeRequest(options, onResponse);
}

/**
 * Calls a function of a package that reads `http.request` while it is called, and finds Node's own there.
 *
 * @param create Must be synchronous: no other code runs meanwhile.
 */
export function withNativeRequests<Result>(create: () => Result): Result {
  // Bun has its own ws, and Deno's modules can't be changed.
  if (runtime.name !== 'Node') return create();
  const before = [http.request, https.request] as const;
  try {
    [http.request, https.request] = [
      nativeRequest as typeof http.request,
      nativeRequest as typeof https.request,
    ];
    return create();
  } finally {
    [http.request, https.request] = before;
  }
}
