import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { raceTimeout } from '../../shared/abort.js';
import { environment } from '../../shared/environment.js';
import { ConnectError } from '../../shared/lease-errors.js';

/** Time in ms to close the contexts of a client. The end of the lease closes what is left. */
const CLOSE_TIMEOUT = 2000;

/**
 * The program of the thread. Text, because a bundle of the user has no second file; without `require`, because the text is a module
 * if this process runs one from its arguments.
 */
const PROGRAM = `
const { parentPort, workerData } = process.getBuiltinModule('node:worker_threads');
const { playwright, browserUrl, ...options } = workerData;
const { chromium } = process.getBuiltinModule('node:module').createRequire(playwright)(playwright);
const serve = async () => {
  const browser = await chromium.connectOverCDP(browserUrl, { timeout: 0, ...options });
  parentPort.once('message', () => browser.close().finally(() => process.exit()));
  // If nobody waits for this thread any longer. The client is still to receive that its browser has ended.
  browser.once('disconnected', () => setTimeout(() => process.exit(), 1000));
  const { endpoint } = await browser.bind('pooled-browser', { host: '127.0.0.1', port: 0 });
  parentPort.postMessage(endpoint);
};
serve();
`;

interface ServerThreadOptions {
  /** The path of playwright-core. */
  readonly playwright: string;
  /** The CDP URL of the browser. */
  readonly browserUrl: string;
  /** A folder that only this user can read. */
  readonly folder: string;
  /** Whether the connection to the browser copies the files of an upload to its machine. */
  readonly copiesUploads: boolean;
  readonly signal: AbortSignal;
}

/**
 * The server side of Playwright for one client, in a thread of its own. A client can make it work without end, with a regular
 * expression for example, or end it by an error: neither reaches the leases of this process.
 */
export class ServerThread {
  /** The URL of Playwright's protocol. It contains a secret. */
  readonly url: string;
  readonly #worker: Worker;
  readonly #ended: Promise<unknown>;

  /** @throws ConnectError if Playwright itself fails; the reason of the signal. */
  static async start(how: ServerThreadOptions): Promise<ServerThread> {
    const { playwright, browserUrl, folder, copiesUploads, signal } = how;
    // Playwright writes the URL into this folder. By default, other users of this machine may read it.
    const registry = join(folder, 'registry');
    await mkdir(registry, { mode: 0o700 });
    // With PWDEBUG, the server would open the window of an inspector, whose browser need not be installed. The client has its own.
    const { PWDEBUG: _ofClient, ...variables } = environment.forProgram();
    const worker = new Worker(PROGRAM, {
      eval: true,
      // With isLocal, uploads are files of this machine, of any size. Otherwise they are arguments of a command, up to 50 MB.
      workerData: { playwright, browserUrl, artifactsDir: folder, isLocal: copiesUploads },
      env: {
        ...variables,
        PWTEST_SERVER_REGISTRY: registry,
        PLAYWRIGHT_SERVER_REGISTRY: registry,
      },
    });
    try {
      const [url] = (await once(worker, 'message', { signal })) as [string];
      return new ServerThread(worker, url);
    } catch (error) {
      worker.on('error', () => {});
      await worker.terminate();
      if (signal.aborted) throw error;
      const reason = error instanceof Error ? error.message : String(error);
      throw new ConnectError(`The server side of Playwright failed: ${reason}`, { cause: error });
    }
  }

  private constructor(worker: Worker, url: string) {
    this.url = url;
    this.#worker = worker;
    this.#ended = new Promise((resolve) => worker.once('exit', resolve));
    // Its connections close, which ends the client's. Without a listener, the error would end this process.
    worker.on('error', () => {});
  }

  /** Closes the contexts of the client, and ends the thread. Never rejects. */
  async close(): Promise<void> {
    this.#worker.postMessage('close');
    await raceTimeout(CLOSE_TIMEOUT, () => this.#ended).catch(() => {});
    await this.#worker.terminate();
  }
}
