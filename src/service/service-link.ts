import { environment } from '../shared/environment.js';
import { Authorization } from './authorization.js';
import { checkBaseUrl, endpointPath } from './base-url.js';
import { sendAuthorized, type HttpRequest, type HttpResponse } from './http.js';
import type { BrowserPoolOptions } from './pool-options.js';
import { OriginSockets } from './sockets.js';

/** The way to a service: its address, the token for it, and the sockets. Nothing is sent before the first request. */
export class ServiceLink {
  readonly url: URL;
  readonly #authorization: Authorization;
  readonly #sockets: OriginSockets;

  constructor({ baseUrl, token }: BrowserPoolOptions) {
    this.url = checkBaseUrl(baseUrl ?? environment.baseUrl());
    this.#authorization = new Authorization(token ?? environment.accessToken());
    this.#sockets = new OriginSockets(this.url.origin);
  }

  /** The token that was used last: at the end of a process there is no time to ask for another. */
  get lastToken(): string | undefined {
    return this.#authorization.last;
  }

  /** The path of an endpoint; each segment is encoded. */
  path(...segments: string[]): string {
    return endpointPath(this.url, ...segments);
  }

  async send(request: HttpRequest): Promise<HttpResponse> {
    return sendAuthorized(await this.#sockets.dispatcher(), this.#authorization, request);
  }

  /** Resolves once the first request is on its way. */
  connected(): Promise<void> {
    return this.#sockets.connected();
  }

  close(): Promise<void> {
    return this.#sockets.close();
  }
}
