import { CdpClient } from '../../wire/cdp-client.js';
import { freeLoggedObjects } from '../../wire/logged-objects.js';
import type { EventParams } from '../../wire/message.js';
import type { OwnClient } from '../../wire/forms.js';
import { LinkedAbort, raceTimeout } from '../../shared/abort.js';
import { PageBridge } from './bridge.js';
import type { Lasting } from './context.js';
import { ExposedStreams } from './exposed-streams.js';
import { ExposedUploads } from './exposed-uploads.js';
import { ExposedWebSockets } from './exposed-websocket.js';
import { PausedRequest, type Answering } from './paused-request.js';
import { Targets, type AttachedTarget } from './targets.js';

/** Time to end the interception, in ms; then its socket is closed. */
const STOP_TIMEOUT = 1000;

/** The interception of a browser over one WebSocket: all requests, streams and WebSockets of pages that it answers end with it. */
export class Interception {
  readonly #socket: OwnClient;
  readonly #context: Answering;
  readonly #bridge: PageBridge;
  readonly #abort: LinkedAbort;
  #isOpen = false;

  constructor(socket: OwnClient, lasting: Lasting) {
    this.#socket = socket;
    this.#abort = new LinkedAbort(lasting.end);
    const targets: Targets = new Targets(
      () => cdp,
      lasting.starts,
      (target) => this.#prepare(target),
      (sessionId, contextId) => {
        this.#bridge.leave(sessionId, contextId);
        for (const frameId of targets.framesOf(sessionId, contextId)) lasting.events.leave(frameId);
      },
    );
    const cdp: CdpClient = new CdpClient(socket, {
      ...targets.listeners,
      ...freeLoggedObjects(() => cdp),
      'Fetch.requestPaused': (paused) => this.#answer(paused),
      'Runtime.bindingCalled': (call, session) => this.#bridge.receive(call, session),
    });
    const context = { ...lasting, cdp, targets, signal: this.#abort.signal };
    const [streams, kept] = [new ExposedStreams(context), new ExposedUploads()];
    const kinds = {
      fetch: streams.requests,
      body: streams,
      upload: kept,
      socket: new ExposedWebSockets(context),
    };
    this.#bridge = new PageBridge(context, kinds);
    this.#context = { ...context, streams, kept };
    void socket.ended.then(() => this.#end());
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
    this.#context.targets.close();
    this.#abort.dispose();
  }

  #answer(paused: EventParams<'Fetch.requestPaused'>): void {
    const { hosts, cdp } = this.#context;
    const { requestId, request } = paused;
    const url = hosts.read(request.url, 'request');
    if (url !== undefined) void new PausedRequest(url, paused, this.#context).answer();
    // It may be gone.
    else cdp.send('Fetch.continueRequest', { requestId }).catch(() => {});
  }

  async #prepare(target: AttachedTarget): Promise<void> {
    const { cdp, script: source } = this.#context;
    const send = (method: string, params: object = {}) => cdp.send(method, params, target.sessionId);
    // The browser's own `Fetch.enable` applies to what is loaded later. Those of open pages and workers make them create their loaders again.
    const renewed = this.#isOpen ? [] : [send('Fetch.enable', { patterns: [] }), send('Fetch.disable')];
    const isPage = target.type === 'page' || target.type === 'iframe';
    // The browser handles commands in order: the script finds the binding.
    await Promise.all([
      ...renewed,
      this.#bridge.add(target),
      // For the origins of documents.
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
