import { once } from 'node:events';
import { WebSocket } from 'ws';
import { raceTimeout } from '../../shared/abort.js';
import { isRecord, LARGEST_MESSAGE, recordOf } from '../../shared/json.js';

/** Milliseconds for a command, on a busy machine. */
const ANSWER_TIMEOUT = 20_000;

/**
 * The WebDriver sessions of a Firefox, which has one at a time, at a port without a secret. While no client has one, a session of our
 * own keeps other programs of this machine out, except for the milliseconds of a change.
 */
export class FirefoxSessions {
  readonly #url: string;
  readonly #onLost: () => void;
  /** Those that began a session, or tried to. */
  readonly #clients = new Set<WebSocket>();
  #own: WebSocket | undefined;
  /** One change after the other. */
  #queue: Promise<unknown> = Promise.resolve();

  /**
   * Opens the first session, which waits until Firefox has started.
   *
   * @param onLost Called when another program has the session, or Firefox does not answer: the browser is not usable then.
   */
  static async open(url: string, onLost: () => void): Promise<FirefoxSessions> {
    const sessions = new FirefoxSessions(url, onLost);
    await sessions.#guard();
    return sessions;
  }

  private constructor(url: string, onLost: () => void) {
    this.#url = url;
    this.#onLost = onLost;
  }

  /** Opens a WebSocket for a client. It has no session yet. */
  connect(): Promise<WebSocket> {
    return this.#open();
  }

  /** Ends the session of this process, in favour of that of a client, whose next command is `session.new`. */
  begin(socket: WebSocket): Promise<void> {
    return this.#enqueue(async () => {
      this.#clients.add(socket);
      if (this.#own) await endSession(this.#own);
      this.#own = undefined;
    });
  }

  /** Ends the connection of a client, and its session with all that it set. */
  disconnect(socket: WebSocket): Promise<void> {
    return this.#enqueue(async () => {
      await endSession(socket);
      this.#clients.delete(socket);
      if (this.#clients.size === 0 && !this.#own) await this.#guard();
    });
  }

  /** Opens a URL in the first page. Resolves when the page has loaded. */
  openUrl(url: string): Promise<void> {
    return this.#enqueue(async () => {
      if (!this.#own) return;
      const { contexts } = await ask(this.#own, 'browsingContext.getTree', { maxDepth: 0 });
      const [page] = contexts as { context: string }[];
      await ask(this.#own, 'browsingContext.navigate', { context: page?.context, url, wait: 'complete' });
    });
  }

  #enqueue<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => {});
    return done;
  }

  async #guard(): Promise<void> {
    try {
      const socket = await this.#open();
      await ask(socket, 'session.new', { capabilities: {} });
      this.#own = socket;
    } catch (error) {
      this.#onLost();
      throw error;
    }
  }

  async #open(): Promise<WebSocket> {
    const socket = new WebSocket(this.#url, { perMessageDeflate: false, maxPayload: LARGEST_MESSAGE });
    socket.on('error', () => {});
    await once(socket, 'open');
    return socket;
  }
}

/** Ends the session of a WebSocket, if it has one, and closes it. */
async function endSession(socket: WebSocket): Promise<void> {
  await ask(socket, 'session.end').catch(() => {});
  socket.terminate();
}

/** Above the ids of every client. */
const FIRST_ID = 2 ** 52;
let lastId = FIRST_ID;

/** Sends a command. Resolves to its result. */
async function ask(socket: WebSocket, method: string, params: object = {}): Promise<Record<string, unknown>> {
  if (socket.readyState !== WebSocket.OPEN) throw new Error('The connection to Firefox has ended.');
  const id = ++lastId;
  let onMessage!: (data: Buffer) => void;
  const answer = new Promise<Record<string, unknown>>((resolve, reject) => {
    onMessage = (data) => {
      const { id: answered, result, error } = recordOf(String(data));
      if (answered !== id) return;
      if (isRecord(result)) resolve(result);
      else reject(new Error(`${method} failed: ${String(error)}.`));
    };
    socket.once('close', () => reject(new Error('The connection to Firefox has ended.')));
  });
  socket.on('message', onMessage);
  socket.send(JSON.stringify({ id, method, params }));
  try {
    return await raceTimeout(
      ANSWER_TIMEOUT,
      () => answer,
      () => new Error(`Firefox did not answer ${method}.`),
    );
  } finally {
    socket.off('message', onMessage);
  }
}
