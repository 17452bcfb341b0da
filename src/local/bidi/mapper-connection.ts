import type { BidiMapper } from 'chromium-bidi';
import {
  CdpConnection,
  CdpSessionGone,
  type CdpEvent,
  type DevToolsAddress,
} from '../browser/cdp-connection.js';

/** The part of chromium-bidi that is used at run time. Passed in: this file must load without it. */
export type Mapper = typeof BidiMapper;

/**
 * Commands that chromium-bidi sends in answer to an event without waiting for the outcome. A rejection of one of those
 * would be nobody's, and end this process; the usual reason is a page that closed in between.
 */
const UNAWAITED = new Set([
  'Fetch.continueRequest',
  'Fetch.continueResponse',
  'Fetch.continueWithAuth',
  'Page.handleJavaScriptDialog',
  'Target.setAutoAttach',
]);

/** A CDP connection in the shape that chromium-bidi takes: one client for the browser, one for each attached session. */
export class MapperConnection {
  /** The client of the browser itself. */
  readonly browser: BidiMapper.CdpClient;
  readonly #mapper: Mapper;
  readonly #clients = new Map<string | undefined, BidiMapper.CdpClient>();
  #cdp!: CdpConnection;
  #isInEvent = false;

  private constructor(mapper: Mapper) {
    this.#mapper = mapper;
    this.browser = this.#createClient(undefined);
  }

  static async open(mapper: Mapper, browser: DevToolsAddress): Promise<MapperConnection> {
    const connection = new MapperConnection(mapper);
    connection.#cdp = await CdpConnection.open(browser, (event) => connection.#receive(event));
    return connection;
  }

  /** Resolves when the browser, or `close`, ended the connection. */
  get closed(): Promise<void> {
    return this.#cdp.closed;
  }

  /** For chromium-bidi. */
  getCdpClient(sessionId: string): BidiMapper.CdpClient {
    const client = this.#clients.get(sessionId);
    if (!client) throw new Error(`There is no CDP session ${sessionId}.`);
    return client;
  }

  close(): void {
    this.#clients.clear();
    this.#cdp.close();
  }

  #createClient(sessionId: string | undefined): BidiMapper.CdpClient {
    const client = Object.assign(new this.#mapper.EventEmitter(), {
      sessionId,
      isCloseError: (error: unknown) => error instanceof CdpSessionGone,
      sendCommand: (method: string, params?: object) => this.#send(method, params, sessionId),
    }) as unknown as BidiMapper.CdpClient;
    this.#clients.set(sessionId, client);
    return client;
  }

  #send(method: string, params: object | undefined, sessionId: string | undefined): Promise<object> {
    const answer = this.#cdp.ask(method, params, sessionId);
    return this.#isInEvent && UNAWAITED.has(method) ? answer.catch(() => ({})) : answer;
  }

  #receive({ method, params, sessionId }: CdpEvent): void {
    const target = String(params['sessionId']);
    if (method === 'Target.attachedToTarget') this.#createClient(target);
    this.#isInEvent = true;
    try {
      this.#clients.get(sessionId)?.emit(method as never, params as never);
    } catch {
      // A listener of chromium-bidi that throws must not take the other events, nor this process, with it.
    } finally {
      this.#isInEvent = false;
    }
    if (method === 'Target.detachedFromTarget') this.#clients.delete(target);
  }
}
