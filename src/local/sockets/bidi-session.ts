import type { BidiMapper } from 'chromium-bidi';
import { clock } from '../../shared/clock.js';
import { lazyLibrary } from '../../shared/lazy-library.js';
import type { CdpPort } from '../../wire/client.js';
import { openPort, type CdpBrowser } from '../../wire/cdp-source.js';
import type { WireMessage } from '../../wire/forms.js';
import type { Chromium } from '../browser/chromium.js';
import { HttpFault } from '../http/answer.js';

/** A BiDi message of either direction. */
export type BidiMessage = Record<string, unknown>;

/** The package chromium-bidi, once it is loaded. */
export interface BidiLibrary {
  readonly mapper: typeof BidiMapper;
  /** Checks the parameters of commands. Undefined: Chromium receives them unchecked. */
  readonly parser: BidiMapper.BidiCommandParameterParser | undefined;
}

const importBidi = lazyLibrary('chromium-bidi', () => import('chromium-bidi'));

/** Loads the optional peer chromium-bidi. @throws HttpFault 501 when it is not installed, or too old. */
export async function loadBidiLibrary(): Promise<BidiLibrary> {
  try {
    const { BidiMapper } = await importBidi();
    return { mapper: BidiMapper, parser: await loadParser() };
  } catch (error) {
    throw new HttpFault(501, 'not_implemented', `BiDi: ${(error as Error).message}`);
  }
}

/** The path of the parser is not public: a version without this path works without the checks. */
async function loadParser(): Promise<BidiLibrary['parser']> {
  try {
    const { BidiParser } = await import('chromium-bidi/out/Default/gen/src/bidiTab/BidiParser.js');
    return new BidiParser();
  } catch {
    return undefined;
  }
}

/**
 * Commands that chromium-bidi sends from an event handler without awaiting the result. Their rejection, usually because
 * the page has closed, would be unhandled and end this process.
 */
const UNAWAITED = new Set([
  'Fetch.continueRequest',
  'Fetch.continueResponse',
  'Fetch.continueWithAuth',
  'Page.handleJavaScriptDialog',
  'Target.setAutoAttach',
]);

/** Chromium answered a command with an error. */
class CdpError extends Error {
  readonly code: number;

  constructor({ code, message }: Pick<CdpError, 'code' | 'message'>) {
    super(message);
    this.code = code;
  }
}

/** The command's session ended before Chromium answered. */
class SessionGone extends Error {}

type CommandHandler = Parameters<BidiMapper.BidiTransport['setOnMessage']>[0];

/** One BiDi session: chromium-bidi between a client and its own CDP connection. */
export class BidiSession implements BidiMapper.BidiTransport {
  readonly #library: BidiLibrary;
  readonly #clients = new Map<string | undefined, BidiMapper.CdpClient>();
  #port!: CdpPort;
  #lastId = 0;
  #onCommand: CommandHandler = () => {};
  #onMessage: (message: BidiMessage) => void;
  #isInEvent = false;
  #hasEnded = false;

  private constructor(library: BidiLibrary, onMessage: (message: BidiMessage) => void) {
    this.#library = library;
    this.#onMessage = onMessage;
  }

  /** Connects to the browser. The session then expects the command `session.new`. */
  static async open(
    library: BidiLibrary,
    browser: Chromium,
    onMessage: (message: BidiMessage) => void,
  ): Promise<BidiSession> {
    const session = new BidiSession(library, onMessage);
    const client = session.#createClient(undefined);
    session.#port = await openPort(inTasks(browser.pipe));
    session.#port.listen((event) => session.#receive(event));
    void session.#port.ended.then(() => (session.#hasEnded = true));
    try {
      await library.mapper.BidiServer.createAndStart(session, session, client, '', library.parser);
    } catch (error) {
      session.close();
      throw error;
    }
    return session;
  }

  /** Resolves when the browser has ended, or after `close`. */
  get closed(): Promise<unknown> {
    return this.#port.ended;
  }

  /** Passes a command of the client to chromium-bidi. */
  send(command: BidiMessage): void {
    void this.#onCommand(command as unknown as Parameters<CommandHandler>[0]);
  }

  /** Ends the session and its CDP connection. The browser stays. */
  close(): void {
    this.#onCommand = () => {};
    this.#onMessage = () => {};
    this.#clients.clear();
    this.#port.close();
  }

  /** Called by chromium-bidi. */
  setOnMessage(handler: CommandHandler): void {
    this.#onCommand = handler;
  }

  /** Called by chromium-bidi with a message for the client. */
  sendMessage(message: object): void {
    this.#onMessage(message as BidiMessage);
  }

  /** Called by chromium-bidi. */
  getCdpClient(sessionId: string): BidiMapper.CdpClient {
    const client = this.#clients.get(sessionId);
    if (!client) throw new Error(`There is no CDP session ${sessionId}.`);
    return client;
  }

  #createClient(sessionId: string | undefined): BidiMapper.CdpClient {
    const client = Object.assign(new this.#library.mapper.EventEmitter(), {
      sessionId,
      isCloseError: (error: unknown) => error instanceof SessionGone,
      sendCommand: (method: string, params?: object) => this.#sendCdp(method, params, sessionId),
    }) as unknown as BidiMapper.CdpClient;
    this.#clients.set(sessionId, client);
    return client;
  }

  /** Unlike our own client, chromium-bidi reads all fields of a result. */
  #sendCdp(method: string, params: object | undefined, sessionId: string | undefined): Promise<object> {
    const answer = new Promise<object>((resolve, reject) => {
      const command = { id: ++this.#lastId, method, params: { ...params }, sessionId };
      this.#port.request(command, (response) => {
        // After the end of the browser, nobody waits for an answer.
        if (response === undefined)
          queueMicrotask(() => this.#hasEnded || reject(new SessionGone('The CDP session is gone.')));
        else if (response.error === undefined) resolve(Object(response.result) as object);
        else reject(new CdpError(response.error as CdpError));
      });
    });
    return this.#isInEvent && UNAWAITED.has(method) ? answer.catch(() => ({})) : answer;
  }

  #receive({ method = '', params = {}, sessionId }: WireMessage): void {
    const target = String(params['sessionId']);
    if (method === 'Target.attachedToTarget') this.#createClient(target);
    this.#isInEvent = true;
    try {
      this.#clients.get(sessionId)?.emit(method as never, params as never);
    } catch {
      // An error in a listener of chromium-bidi must not end this process.
    } finally {
      this.#isInEvent = false;
    }
    if (method === 'Target.detachedFromTarget') this.#clients.delete(target);
  }
}

/**
 * One message per task: chromium-bidi looks for the context of an event in a later microtask. If the context ended with the next
 * message of the same chunk, the error would be an unhandled rejection, which ends this process.
 */
function inTasks(browser: CdpBrowser): CdpBrowser {
  return {
    connect: (receiver) =>
      browser.connect({
        onMessage: (message) => void clock.setImmediate(() => receiver.onMessage(message)),
        onEnd: () => void clock.setImmediate(() => receiver.onEnd()),
      }),
  };
}
