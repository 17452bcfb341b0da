import { startTimer } from '../shared/abort.js';
import type { BrowserSession } from '../service/wire.js';
import { endpointOf } from './endpoint.js';
import { Socket } from './socket.js';

/** A connect that takes this many ms may be held up by a frozen page. */
const SLOW_CONNECT = 4000;
/** Milliseconds that a page has to answer before it counts as frozen. */
const ANSWER_TIMEOUT = 2000;

/**
 * One page with a stuck script or dialog can keep a driver from connecting, and the browser would be lost with it.
 * Once connecting is slow, this closes the pages that don't answer, over a websocket of its own; a quick connect
 * costs no round trip.
 */
export class FrozenPageCure {
  /** True once a page was closed. */
  closedPages = false;
  readonly #stopped = new AbortController();
  readonly #timer: NodeJS.Timeout | undefined;

  constructor(
    session: BrowserSession,
    options: { baseUrl: string; connectTimeout: number; onFrozenPages: (urls: string[]) => void },
  ) {
    const { baseUrl, connectTimeout, onFrozenPages } = options;
    this.#timer = startTimer(Math.min(SLOW_CONNECT, connectTimeout / 3), () => {
      this.#run(session, baseUrl).then(
        (urls) => urls.length > 0 && onFrozenPages(urls),
        // The time limit of the connect tells what there is to tell.
        () => {},
      );
    });
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#stopped.abort();
  }

  async #run(session: BrowserSession, baseUrl: string): Promise<string[]> {
    const { signal } = this.#stopped;
    const socket = await Socket.open(endpointOf(session, 'cdp', baseUrl), signal);
    signal.addEventListener('abort', () => socket.cut('closed-by-us'), { once: true });
    try {
      const cdp = new CdpClient(socket);
      const { targetInfos = [] } = await cdp.send<{ targetInfos?: TargetInfo[] }>('Target.getTargets');
      const pages = targetInfos.filter(({ type }) => type === 'page');
      const answered = await Promise.all(pages.map(({ targetId }) => answers(cdp, targetId)));
      signal.throwIfAborted();
      const frozen = pages.filter((_page, index) => !answered[index]);
      this.closedPages = frozen.length > 0;
      await Promise.all(frozen.map(({ targetId }) => cdp.send('Target.closeTarget', { targetId })));
      return frozen.map(({ url }) => url);
    } finally {
      socket.close('closed-by-us');
    }
  }
}

interface TargetInfo {
  targetId: string;
  type: string;
  url: string;
}

async function answers(cdp: CdpClient, targetId: string): Promise<boolean> {
  const { sessionId } = await cdp.send<{ sessionId: string }>('Target.attachToTarget', {
    targetId,
    flatten: true,
  });
  let timer: NodeJS.Timeout | undefined;
  const silence = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, ANSWER_TIMEOUT, false);
  });
  const answer = cdp.send('Runtime.evaluate', { expression: '0' }, sessionId).then(() => true);
  try {
    return await Promise.race([answer, silence]);
  } finally {
    clearTimeout(timer);
  }
}

interface Reply {
  id?: number;
  result?: unknown;
}

/** As much of a CDP client as it takes. A refused command answers nothing we read, and a closed socket all of them. */
class CdpClient {
  readonly #socket: Socket;
  readonly #pending = new Map<number, (reply: Reply) => void>();
  #lastId = 0;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.onMessage = (data) => {
      const reply = JSON.parse(String(data)) as Reply;
      this.#pending.get(reply.id!)?.(reply);
      this.#pending.delete(reply.id!);
    };
    void socket.ended.then(() => this.#pending.forEach((resolve) => resolve({})));
  }

  async send<Result>(method: string, params: object = {}, sessionId?: string): Promise<Result> {
    const id = ++this.#lastId;
    const replied = new Promise<Reply>((resolve) => this.#pending.set(id, resolve));
    this.#socket.send(JSON.stringify({ id, method, params, sessionId }));
    return ((await replied).result ?? {}) as Result;
  }
}
