import { raceTimeout, startTimer } from '../shared/abort.js';
import type { Socket } from './socket.js';

/** Milliseconds after which a connect may be waiting for an unresponsive page. */
const SLOW_CONNECT = 4000;
/** Time for a page to answer, in ms. */
const ANSWER_TIMEOUT = 2000;

/**
 * Closes the pages that do not answer if connecting is slow. A page with a blocked script or an open dialog can prevent
 * an automation library from connecting, and the browser would be lost. A fast connect causes no request.
 *
 * @param onClosed Called with the URLs of the closed pages.
 */
export function closeUnresponsivePages(
  open: (signal: AbortSignal) => Promise<Socket>,
  connectTimeout: number,
  onClosed: (urls: string[]) => void,
): { wereClosed(): boolean; stop(): void } {
  const stopped = new AbortController();
  let wereClosed = false;
  const run = async () => {
    const socket = await open(stopped.signal);
    stopped.signal.addEventListener('abort', () => socket.cut('closed-by-us'), { once: true });
    try {
      const cdp = new CdpClient(socket);
      const pages = await findUnresponsive(cdp);
      stopped.signal.throwIfAborted();
      if (pages.length === 0) return;
      wereClosed = true;
      await Promise.all(pages.map(({ targetId }) => cdp.send('Target.closeTarget', { targetId })));
      onClosed(pages.map(({ url }) => url));
    } finally {
      socket.close('closed-by-us');
    }
  };
  // After a failure here, the timeout of the connect is reported.
  const timer = startTimer(Math.min(SLOW_CONNECT, connectTimeout / 3), () => void run().catch(() => {}));
  return {
    wereClosed: () => wereClosed,
    stop: () => {
      clearTimeout(timer);
      // Without a reason, Node would create an error with a stack trace.
      stopped.abort('stopped');
    },
  };
}

interface TargetInfo {
  targetId: string;
  type: string;
  url: string;
}

async function findUnresponsive(cdp: CdpClient): Promise<TargetInfo[]> {
  const { targetInfos = [] } = await cdp.send<{ targetInfos?: TargetInfo[] }>('Target.getTargets');
  const pages = targetInfos.filter(({ type }) => type === 'page');
  const answers = await Promise.all(pages.map(({ targetId }) => answersInTime(cdp, targetId)));
  return pages.filter((_page, index) => !answers[index]);
}

async function answersInTime(cdp: CdpClient, targetId: string): Promise<boolean> {
  const attached = { targetId, flatten: true };
  const { sessionId } = await cdp.send<{ sessionId: string }>('Target.attachToTarget', attached);
  const answer = () => cdp.send('Runtime.evaluate', { expression: '0' }, sessionId);
  const late = new Error('The page does not respond.');
  try {
    await raceTimeout(ANSWER_TIMEOUT, answer, () => late);
    return true;
  } catch (error) {
    if (error === late) return false;
    throw error;
  }
}

interface Reply {
  id?: number;
  result?: unknown;
}

/** A minimal CDP client. A command that fails, and every command after the socket has ended, has an empty result. */
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
