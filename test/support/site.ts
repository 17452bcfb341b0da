import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll } from 'vitest';

/** A web site on this machine. */
export class Site implements AsyncDisposable {
  readonly server;

  static async open(onRequest: RequestListener): Promise<Site> {
    const site = new Site(onRequest);
    await site.listen();
    return site;
  }

  constructor(onRequest: RequestListener) {
    this.server = createServer(onRequest);
  }

  async listen(port = 0): Promise<void> {
    await once(this.server.listen(port, '127.0.0.1'), 'listening');
  }

  /** Its origin. */
  get url(): string {
    return this.as('127.0.0.1');
  }

  /** Its origin at another host name of this machine. */
  as(host: string): string {
    return `http://${host}:${(this.server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server.closeAllConnections();
    await once(this.server.close(), 'close');
  }
}

/** A web site for the whole test file. */
export function useSite(onRequest: RequestListener): Site {
  const site = new Site(onRequest);
  beforeAll(() => site.listen());
  afterAll(() => site[Symbol.asyncDispose]());
  return site;
}
