import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { json } from 'node:stream/consumers';
import { describe } from 'vitest';
import { findBrowser } from '../../src/local.js';
import { Site } from './site.js';

export const hasChromedriver = spawnSync('chromedriver', ['--version']).status === 0;
const SKIPPED = hasChromedriver
  ? ''
  : ' (skipped: there is no chromedriver; apt-get install chromium-driver)';

/** Tests that need chromedriver. Where it is not installed, the report shows why they are skipped. */
export function describeWithChromedriver(title: string, tests: () => void): void {
  describe.skipIf(!hasChromedriver)(`${title}${SKIPPED}`, () => {
    tests();
  });
}

interface SessionRequest {
  readonly capabilities: { readonly alwaysMatch: object };
}

/** A chromedriver on a free port of this machine. */
export class Chromedriver implements AsyncDisposable {
  readonly url: string;
  /** Capabilities that start the browser of this machine. */
  readonly capabilities: Record<string, unknown>;
  readonly #end: () => Promise<unknown>;

  static async start(): Promise<Chromedriver> {
    const server = spawn('chromedriver', ['--port=0'], { stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    let port: string | undefined;
    for await (const text of server.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
      output += text as string;
      port = /started successfully on port (\d+)/.exec(output)?.[1];
      if (port !== undefined) break;
    }
    server.stdout.resume();
    const exited = once(server, 'exit');
    const end = () => {
      server.kill();
      return exited;
    };
    if (port === undefined) {
      await end();
      throw new Error(`chromedriver did not start:\n${output}`);
    }
    return new Chromedriver(`http://127.0.0.1:${port}`, await findBrowser(), end);
  }

  private constructor(url: string, binary: string, end: () => Promise<unknown>) {
    this.url = url;
    this.capabilities = { 'goog:chromeOptions': { binary, args: ['--headless', '--no-sandbox'] } };
    this.#end = end;
  }

  /** Ids of the sessions that it has. */
  async sessions(): Promise<string[]> {
    const { value } = (await (await fetch(`${this.url}/sessions`)).json()) as { value: { id: string }[] };
    return value.map(({ id }) => id);
  }

  /**
   * Serves an address of this chromedriver that adds `capabilities` to each request for a session: a Chromium of root, or
   * without a display, does not start without arguments.
   */
  serveWithCapabilities(): Promise<Site> {
    return Site.open(async (request, response) => {
      const { method = '', url: path = '' } = request;
      const body = method === 'POST' ? ((await json(request)) as SessionRequest) : undefined;
      if (body) Object.assign(body.capabilities.alwaysMatch, this.capabilities);
      const answer = await fetch(this.url + path, { method, ...(body && { body: JSON.stringify(body) }) });
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text());
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end();
  }
}
