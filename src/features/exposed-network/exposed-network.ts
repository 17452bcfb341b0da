import type { Browser } from 'playwright-core';
import { LinkedAbort } from '../../shared/abort.js';
import { backoff, delay } from '../../shared/clock.js';
import type { ConnectExtension } from '../../drivers/extension.js';
import { Bodies } from './body-reader.js';
import { BrowserClients } from './browser-clients.js';
import type { ExposePlan, Lasting } from './context.js';
import { EventStreams } from './exposed-events.js';
import { ExposedSender } from './exposed-request.js';
import { Interception } from './interception.js';
import { pageScript } from './page-script.js';
import { RequestBodies } from './request-bodies.js';

/** Attempts to replace a lost socket, and the pauses between them. */
const ATTEMPTS = 4;
const PAUSES = { factor: 2, minTimeout: 100, maxTimeout: 1000, randomize: true };

/**
 * Answers the requests of a browser to some hosts from this machine: the browser pauses those requests, in all its pages,
 * workers and contexts, and continues all others by itself. It uses a WebSocket of its own, so it depends on no library, and
 * large bodies do not delay the library's messages.
 */
export class ExposedNetwork implements ConnectExtension {
  readonly #abort = new LinkedAbort();
  readonly #lasting: Lasting;
  /** Over the current WebSocket. */
  #interception: Interception | undefined;

  constructor(plan: ExposePlan) {
    const { hosts, connectOptions, layers, sessions } = plan;
    const clients = new BrowserClients(sessions);
    // An option of Puppeteer.
    const { acceptInsecureCerts } = connectOptions as { acceptInsecureCerts?: unknown };
    const { signal } = this.#abort;
    this.#lasting = {
      ...plan,
      clients,
      sender: new ExposedSender(acceptInsecureCerts === true),
      bodies: new Bodies(),
      uploads: new RequestBodies(),
      events: new EventStreams(signal),
      script: pageScript(hosts),
      end: signal,
    };
    layers.add(clients.layer, this.#lasting.uploads.layer);
  }

  /** With Playwright, the options of contexts are not visible otherwise, and scripts of its own replace WebSocket, too. */
  async useBrowser(library: string, browser: object): Promise<void> {
    if (library !== 'playwright') return;
    const one = browser as Browser;
    const { sender, script: content } = this.#lasting;
    const newContext = one.newContext.bind(one);
    one.newContext = async (options) => {
      // The browser does not report which context sent a request.
      if (options?.ignoreHTTPSErrors) sender.acceptsInsecureCerts = true;
      const context = await newContext(options);
      await context.addInitScript({ content });
      return context;
    };
    await Promise.all(one.contexts().map((context) => context.addInitScript({ content })));
  }

  /** Begins the interception. */
  async open(signal: AbortSignal): Promise<void> {
    const socket = await this.#lasting.openCdp(signal);
    if (this.#abort.signal.aborted) return socket.cut('closed-by-us');
    const interception = new Interception(socket, this.#lasting);
    this.#interception = interception;
    await interception.open();
    void socket.ended.then(() => this.#replace());
  }

  /** Ends the interception. Afterwards no response, and no cookie of one, reaches the browser. Never rejects. */
  async stop(): Promise<void> {
    this.#end();
    await this.#interception?.stop();
    this.cut();
  }

  /** Ends the interception, without a response of the browser. */
  cut(): void {
    this.#end();
    this.#interception?.cut();
    this.#lasting.sender.close();
  }

  #end(): void {
    // Without a reason, Node would create an error with a stack trace.
    this.#abort.abort('stopped');
    this.#abort.dispose();
  }

  async #replace(): Promise<void> {
    const { signal } = this.#abort;
    for (let failures = 1; !signal.aborted && failures <= ATTEMPTS; failures++) {
      try {
        return await this.open(signal);
      } catch {
        this.#interception?.cut();
        await delay(backoff(PAUSES, failures), signal).catch(() => {});
      }
    }
    if (!signal.aborted) this.#lasting.onLost();
  }
}
