import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Program } from '../cli/support.js';
import { startClient } from '../cli/support.js';
import { processesOf } from '../support/processes.js';

/** Milliseconds for all examples, or a whole suite: several programs one after the other, on a busy machine. */
export const EXAMPLE_TIMEOUT = 600_000;

/** Runs an example as a client of a service. */
export function startExample(
  name: string,
  service: { baseUrl: string; token: string },
  args: readonly string[] = [],
): Program {
  const command = ['--import', 'tsx', `examples/${name}.ts`, ...args];
  return startClient(command, service, { command: process.execPath });
}

/** A web site on this machine. */
export class Site implements AsyncDisposable {
  readonly #server = createServer();

  static async open(onRequest: RequestListener): Promise<Site> {
    const site = new Site();
    site.#server.on('request', onRequest);
    await once(site.#server.listen(0, '127.0.0.1'), 'listening');
    return site;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await once(this.#server.close(), 'close');
  }
}

/** The arguments of all processes of a program: every user of the machine can read them. */
export function argumentsOf(program: Program): string {
  return processesOf(program.folder)
    .map(({ command }) => command)
    .join('\n');
}
