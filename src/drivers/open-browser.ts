import type { SpareConnection } from '../net/spare-connection.js';
import type { Grant } from '../services/browser-service.js';
import { allSettled, LinkedAbort, raceAbort } from '../shared/abort.js';
import { ConnectError } from '../shared/lease-errors.js';
import type { Trust } from '../shared/network.js';
import { isLoopback } from '../shared/urls.js';
import { CdpClient } from '../wire/cdp-client.js';
import type { CleanOptions } from '../clean/browser-state.js';
import { cleanBrowser } from '../clean/clean-browser.js';
import { noteState } from '../clean/note-state.js';
import { BidiWatch, cleanOverBidi, hasCdp } from '../clean/clean-over-bidi.js';
import type { ConnectPlan, OpenConnection } from './connection.js';
import type { Connector, ConnectRequest, BrowserProtocol } from './connector.js';
import type { ConnectExtension } from './extension.js';
import { endHandles } from './end-handles.js';
import { openSharedEndpoint, openSingleEndpoint } from './loopback-endpoint.js';
import { knownFrames } from '../wire/known-frames.js';
import type { OpenClient } from './socket.js';
import type { Client, ClientKind } from '../wire/client.js';
import { Wire, type Shared } from '../wire/wire.js';
import { headersTo, trustedUrl } from './trusted-url.js';

/** A browser to which a socket is open: what runs there beside the library, and how the browser is left. */
export class OpenBrowser {
  readonly #grant: Grant;
  readonly #plan: ConnectPlan;
  readonly #wire: Wire;
  readonly #socket: Client;
  readonly #watch: BidiWatch;
  #extensions: readonly ConnectExtension[] = [];
  /** Aborts when nothing runs beside the library any longer. */
  readonly #over: LinkedAbort;
  readonly #hasOnlyBidi: boolean;
  /** A further client of the browser is within the connection of the library: a second WebSocket would be another lease. */
  readonly #hasOneSocket: boolean;
  #havePagesEnded = false;
  /** The connect has failed. */
  #isDropped = false;

  /** @param signal Aborts when the connect is abandoned. */
  constructor(grant: Grant, plan: ConnectPlan, wire: Wire, signal: AbortSignal) {
    const isCdp = plan.settings.protocol === 'cdp';
    this.#grant = grant;
    this.#plan = plan;
    this.#wire = wire;
    this.#over = new LinkedAbort(signal);
    const socket = wire.main;
    this.#socket = socket;
    this.#watch = new BidiWatch(plan.state.leftOverBidi, plan.state.touchOwnContext);
    this.#hasOnlyBidi = !isCdp && grant.cdpUrl === undefined;
    this.#hasOneSocket = isCdp && grant.endsWithConnection === true;
    wire.shared.stack.add(...(isCdp ? [] : [this.#watch.layer]), knownFrames(), ...noteState(plan.state));
    void socket.ended.then(() => this.#endConnection());
  }

  /** Creates what runs beside the library. */
  async extend({ library: name, sharesFiles = true, savesDownloads = false }: Connector): Promise<void> {
    const { connectOptions } = this.#plan.settings;
    let created = () => {};
    const extending = this.#plan.extend({
      shared: this.#wire.shared,
      own: this.#wire.own,
      openCdp: this.#openCdp,
      library: {
        name,
        sharesFiles: sharesFiles && this.#grant.cdpUrl !== undefined,
        savesDownloads,
        connectOptions,
      },
      isElsewhere: this.#isElsewhere,
      extended: new Promise((resolve) => (created = resolve)),
      onLost: () => this.#socket.cut('dropped'),
      signal: this.#over.signal,
    });
    await allSettled(extending);
    this.#extensions = (await Promise.all(extending)).flatMap((one) => one ?? []);
    created();
  }

  /** Lets the library connect. */
  async connect<Handles>(connector: Connector<Handles>): Promise<OpenConnection<Handles>> {
    const [socket, extensions] = [this.#socket, this.#extensions];
    let used: Promise<unknown> | undefined;
    const useBrowser = async (browser?: object) => {
      used ??= Promise.all(extensions.map(async (one) => one.useBrowser?.(browser)));
      await used;
    };
    const connection = await connector.connect({ ...this.#request, useBrowser });
    await useBrowser();
    return {
      ...connection,
      socket,
      ended: socket.ended,
      explain: (error) => {
        connection.explain?.(error);
        for (const one of extensions) one.explain?.(error);
      },
      cut: () => this.cut(),
      endPages: () => this.endPages(),
      // No response to a request of the lease may arrive while the browser is cleaned.
      cleanup: () =>
        allSettled([
          socket.isDetached ? Promise.resolve() : connection.cleanup(),
          ...extensions.map(async (one) => one.stop?.()),
        ]),
      endHandles,
      takeOver: () => void this.#wire.takeOver(),
      clean: (how) => this.#clean(how),
      ...(this.#hasOnlyBidi && { disconnect: () => this.#endSession().then(() => connection.disconnect()) }),
    };
  }

  /** After a connect that failed: nothing but blank pages is open. */
  drop(): void {
    this.#isDropped = true;
    this.#end();
  }

  cut(): void {
    // Otherwise what limits the pages is within the socket, and lets no other client send any longer.
    if (!this.#hasOneSocket || this.#havePagesEnded) this.#socket.cut('closed-by-us');
    void this.#endConnection();
  }

  endPages(): Promise<void> {
    const ending = this.#extensions.map(async (one) => one.end?.());
    return allSettled(ending).finally(() => (this.#havePagesEnded = true));
  }

  /** Ends what runs beside the library when no page runs any longer. Never rejects. */
  async #endConnection(): Promise<void> {
    // Another connection may use the extensions already.
    if (this.#isDropped) return;
    await this.endPages().catch(() => {});
    this.#end();
  }

  #end(): void {
    // Without a reason, Node would create an error with a stack trace.
    this.#over.abort('ended');
    this.#over.dispose();
    this.#socket.cut('closed-by-us');
  }

  get #request(): ConnectRequest {
    const { settings, pageUrl, state } = this.#plan;
    const { protocol, context, contextOptions, connectOptions, connectTimeout: timeout } = settings;
    const [socket, openClient] = [this.#socket, this.#openClient];
    return {
      socket,
      protocol,
      context,
      contextOptions,
      connectOptions,
      timeout,
      pageUrl,
      endReason:
        `The lease of session ${this.#grant.id} has ended: its callback returned, or it was released. ` +
        'Await each call, or use leaseBrowser for work that outlives a callback.',
      onOwnContextUsed: state.touchOwnContext,
      httpLogins: () => state.httpLogins,
      replacesOwnContext: async () =>
        this.#hasOnlyBidi && !(await hasCdp(this.#wire.own)) && state.replaceOwnContext(),
      endpoint: () => openSingleEndpoint(socket),
      openClient,
      sharedEndpoint: async () => {
        const shared = await openSharedEndpoint(openClient);
        void socket.detached.then(() => shared[Symbol.asyncDispose]());
        return shared.url;
      },
    };
  }

  async #openFurther(protocol: BrowserProtocol, signal: AbortSignal, kind: ClientKind): Promise<Client> {
    const { trust } = this.#plan;
    if (this.#hasOneSocket && protocol === 'cdp')
      return raceAbort(this.#wire.openSession(kind), signal, (late) => late.cut());
    const { shared } = this.#wire;
    return (await openWire(this.#grant, { protocol, trust, signal, kind, shared })).main;
  }

  readonly #openCdp = (signal: AbortSignal): Promise<Client> => this.#openFurther('cdp', signal, 'own');

  readonly #openClient: OpenClient = async (signal, protocol = this.#plan.settings.protocol) => {
    const { isLimit } = this.#wire.shared.stack;
    if (isLimit && protocol === 'bidi') throw new ConnectError(NO_LIMIT, { sessionId: this.#grant.id });
    const client = await this.#openFurther(protocol, signal, 'further');
    // What limits the clients ends with the connection.
    if (isLimit) void this.#socket.ended.then(() => client.cut('closed-by-us'));
    return client;
  };

  async #clean(how: CleanOptions): Promise<void> {
    const { protocol, connectTimeout } = this.#plan.settings;
    const socket = this.#socket;
    if (this.#hasOneSocket) await this.endPages();
    // The pages and requests of the cleaning are not the lease's: neither the library nor a feature receives their events.
    const carrier = this.#wire.takeOver();
    if (protocol === 'cdp') return cleanBrowser(carrier, how);
    if (this.#hasOnlyBidi) return cleanOverBidi(carrier, { ...how, watch: this.#watch });
    const limit = new LinkedAbort(undefined, connectTimeout);
    const cdp = await this.#openCdp(limit.signal).finally(() => limit.dispose());
    return cleanOverCdp(cdp, socket.ended, how);
  }

  /** A browser without CDP, such as Firefox, has one session at a time, which outlasts its connection. Never rejects. */
  async #endSession(): Promise<void> {
    if (this.#watch.hasBegunSession)
      await new CdpClient(this.#wire.takeOver()).send('session.end').catch(() => {});
  }

  /** The address of a browser on another machine can also be one of this machine, for example that of a tunnel. */
  get #isElsewhere(): boolean {
    const { cdpUrl, bidiUrl } = this.#grant;
    return [cdpUrl, bidiUrl].some((url) => url !== undefined && !isLoopback(new URL(url).hostname));
  }
}

const NO_LIMIT = 'The lease limits its clients, which is not possible over WebDriver BiDi.';

/** Cleans a browser with a socket of its own, until `over` resolves: afterwards the browser may belong to another lease. */
export async function cleanOverCdp(socket: Client, over: Promise<unknown>, how: CleanOptions): Promise<void> {
  const cut = () => socket.cut('closed-by-us');
  void over.then(cut);
  try {
    await cleanBrowser(socket, how);
  } finally {
    cut();
  }
}

/** Opens a WebSocket to the session, if its URL may be trusted. */
export async function openWire(
  grant: Grant,
  how: {
    protocol: BrowserProtocol;
    trust: Trust;
    signal: AbortSignal;
    spare?: SpareConnection;
    kind?: ClientKind;
    shared?: Shared;
  },
): Promise<Wire> {
  const { protocol, trust, signal, ...others } = how;
  const url = await trustedUrl(grant, protocol, trust, signal);
  const headers = headersTo(url, grant, trust);
  const { network, keepAlive: after } = trust;
  const keepAlive = after === undefined ? undefined : { after, protocol };
  return Wire.open(url, signal, { ...others, network, headers, keepAlive });
}

/** Opens a further connection whose client has it itself. */
export async function openSocket(...how: Parameters<typeof openWire>): Promise<Client> {
  return (await openWire(...how)).main;
}
