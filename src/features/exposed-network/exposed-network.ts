import type { Browser } from 'playwright-core';
import { LinkedAbort, onAbort, raceTimeout } from '../../shared/abort.js';
import { backoff, delay } from '../../shared/clock.js';
import { CdpClient, type OwnClient } from '../../wire/cdp-client.js';
import { freeLoggedObjects } from '../../wire/logged-objects.js';
import type { EventParams, Session } from '../../wire/layer.js';
import { Bodies } from './response-bodies.js';
import { BrowserClients } from './browser-clients.js';
import type { ExposePlan, ExposedConnection } from './context.js';
import { EVENT_VALUES, EventStreams, hideReconnects } from './exposed-events.js';
import { ExposedSender } from './exposed-request.js';
import { RequestBodies, ExposedUploads, UPLOAD_VALUES } from './request-bodies.js';
import { NAME, PageBridge } from './bridge.js';
import { type Replacement, openBridge } from './page-bridge.js';
import { ExposedStreams, FETCH_VALUES } from './exposed-streams.js';
import { ExposedWebSockets } from './exposed-websocket.js';
import { type Answering, PausedRequest } from './paused-request.js';
import { Targets } from './targets.js';
import type { ExposedHosts } from './exposed-hosts.js';
import { replaceFetch, replaceUploads } from './page-fetch.js';
import { MESSAGE_KIND, replaceWebSocket } from './page-websocket.js';

/** Attempts to replace a lost socket, and the pauses between them. */
const ATTEMPTS = 4;
const PAUSES = { factor: 2, minTimeout: 100, maxTimeout: 1000, randomize: true };

/**
 * Answers the requests of a browser to some hosts from this machine: the browser pauses those requests, in all its pages,
 * workers and contexts, and continues all others by itself. It uses a WebSocket of its own, so it depends on no library, and
 * large bodies do not delay the library's messages.
 */
export class ExposedNetwork {
  readonly #abort = new LinkedAbort();
  readonly #connection: ExposedConnection;
  /** Over the current WebSocket. */
  #interception: Interception | undefined;
  readonly #opening: Promise<void>;

  constructor(plan: ExposePlan) {
    const { hosts, library, shared, extended } = plan;
    const clients = new BrowserClients(shared.sessions);
    // An option of Puppeteer.
    const { acceptInsecureCerts } = library.connectOptions as { acceptInsecureCerts?: unknown };
    const { signal } = this.#abort;
    this.#connection = {
      ...plan,
      clients,
      sender: new ExposedSender(acceptInsecureCerts === true),
      bodies: new Bodies(),
      uploads: new RequestBodies(),
      events: new EventStreams(signal),
      script: pageScript(hosts),
      end: signal,
    };
    shared.stack.add(clients.layer);
    // It identifies the files by their paths on this machine, before another layer replaces them by those on the browser's.
    shared.stack.addFirst(this.#connection.uploads.layer);
    onAbort(plan.signal, () => this.#cut());
    // What limits the pages lets them wait.
    this.#opening = extended.then(() => this.#open());
    this.#opening.catch(() => {});
  }

  /** Resolves when the requests of all pages are answered. */
  async useBrowser(browser: object | undefined): Promise<void> {
    const isPlaywright = browser !== undefined && this.#connection.library.name === 'playwright';
    await Promise.all([this.#opening, isPlaywright && this.#usePlaywright(browser as Browser)]);
  }

  /** With Playwright, the options of contexts are not visible otherwise, and scripts of its own replace WebSocket, too. */
  async #usePlaywright(one: Browser): Promise<void> {
    const { sender, script: content } = this.#connection;
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
  async #open(): Promise<void> {
    const { signal } = this.#abort;
    const socket = await this.#connection.openCdp(signal);
    if (signal.aborted) return socket.cut('closed-by-us');
    const interception = new Interception(socket, this.#connection);
    this.#interception = interception;
    await interception.open();
    void socket.detached.then(() => this.#replace());
  }

  /** Ends the interception. Afterwards no response, and no cookie of one, reaches the browser. Never rejects. */
  async stop(): Promise<void> {
    this.#end();
    await this.#interception?.stop();
    this.#cut();
  }

  /** Ends the interception, without a response of the browser. */
  #cut(): void {
    this.#end();
    this.#interception?.cut();
    this.#connection.sender.close();
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
        return await this.#open();
      } catch {
        this.#interception?.cut();
        await delay(backoff(PAUSES, failures), signal).catch(() => {});
      }
    }
    if (!signal.aborted) this.#connection.onLost();
  }
}

/** Time to end the interception, in ms; then its socket is closed. */
const STOP_TIMEOUT = 1000;

/** The interception of a browser over one WebSocket: all requests, streams and WebSockets of pages that it answers end with it. */
export class Interception {
  readonly #socket: OwnClient;
  readonly #context: Answering;
  readonly #bridge: PageBridge;
  readonly #abort: LinkedAbort;
  #isOpen = false;

  constructor(socket: OwnClient, connection: ExposedConnection) {
    this.#socket = socket;
    this.#abort = new LinkedAbort(connection.end);
    const targets: Targets = new Targets({
      client: socket,
      cdp: () => cdp,
      shared: connection.shared,
      prepare: (session) => this.#prepare(session),
      leave: (sessionId, contextId) => {
        this.#bridge.leave(sessionId, contextId);
        for (const frameId of targets.framesOf(sessionId, contextId)) connection.events.leave(frameId);
      },
    });
    const cdp: CdpClient = new CdpClient(socket, {
      ...targets.listeners,
      ...freeLoggedObjects(() => cdp),
      'Fetch.requestPaused': (paused) => this.#answer(paused),
      'Runtime.bindingCalled': (call, session) => this.#bridge.receive(call, session),
    });
    const context = { ...connection, cdp, targets, signal: this.#abort.signal };
    const [streams, kept] = [new ExposedStreams(context), new ExposedUploads()];
    const kinds = {
      fetch: streams.requests,
      body: streams,
      upload: kept,
      socket: new ExposedWebSockets(context),
      closing: connection.events,
    };
    this.#bridge = new PageBridge(context, kinds);
    this.#context = { ...context, streams, kept };
    void socket.detached.then(() => this.#end());
  }

  async open(): Promise<void> {
    const { cdp, hosts, targets, sender } = this.#context;
    const patterns = hosts.cdpPatterns.map((urlPattern) => ({ urlPattern }));
    const version = cdp.send('Browser.getVersion').then((found) => sender.resemble(found));
    await Promise.all([version, cdp.send('Fetch.enable', { patterns }), targets.open()]);
    this.#isOpen = true;
  }

  /** Ends the interception. Afterwards no response, and no cookie of one, reaches the browser. Never rejects. */
  async stop(): Promise<void> {
    this.#end();
    const late = () => new Error('The browser did not respond.');
    // Its response follows the effects of all earlier commands.
    const disable = () => this.#context.cdp.send('Fetch.disable');
    await raceTimeout<unknown>(STOP_TIMEOUT, disable, late).catch(() => {});
  }

  /** Ends the interception, without a response of the browser. */
  cut(): void {
    this.#end();
    this.#socket.cut('closed-by-us');
  }

  #end(): void {
    // Without a reason, Node would create an error with a stack trace.
    this.#abort.abort('stopped');
    this.#abort.dispose();
  }

  #answer(paused: EventParams<'Fetch.requestPaused'>): void {
    const { hosts, cdp } = this.#context;
    const { requestId, request } = paused;
    const url = hosts.read(request.url, 'request');
    if (url !== undefined) void new PausedRequest(url, paused, this.#context).answer();
    // It may no longer exist.
    else cdp.send('Fetch.continueRequest', { requestId }).catch(() => {});
  }

  async #prepare(session: Session): Promise<void> {
    const { cdp, script: source } = this.#context;
    const send = (method: string, params: object = {}) => cdp.send(method, params, session.id);
    // The browser's own `Fetch.enable` applies to what is loaded later. Those of open pages and workers make them create their loaders again.
    const renewed = this.#isOpen ? [] : [send('Fetch.enable', { patterns: [] }), send('Fetch.disable')];
    const isPage = /^(page|iframe)$/.test(session.target.type);
    // The browser handles commands in order: the script finds the binding.
    await Promise.all([
      ...renewed,
      this.#bridge.add(session),
      // The events of this domain name the origins of documents.
      send('Runtime.enable'),
      ...(isPage
        ? [
            send('Page.enable'),
            send('Page.addScriptToEvaluateOnNewDocument', { source, runImmediately: true }),
          ]
        : [send('Runtime.evaluate', { expression: source })]),
    ]);
  }
}

/** The script that runs in pages and workers before their own ones. */
export function pageScript({ pattern }: ExposedHosts): string {
  const call = <Values>(replace: Replacement<Values>, values: Values) =>
    `(${String(replace)})(bridge, ${JSON.stringify(values)});`;
  return `((bridge) => { if (!bridge) return;
    ${call(replaceWebSocket, MESSAGE_KIND)} ${call(replaceFetch, FETCH_VALUES)}
    ${call(hideReconnects, EVENT_VALUES)} ${call(replaceUploads, UPLOAD_VALUES)}
  })((${String(openBridge)})('${NAME}', ${JSON.stringify(pattern.source)}));`;
}
