import { Socket } from './socket.js';

/** Milliseconds that a page has to answer before it counts as frozen. */
const ANSWER_TIMEOUT = 2000;

/**
 * Closes the pages of a browser that don't answer, over a websocket of its own. One page with a stuck script or dialog
 * keeps every driver from connecting, and the browser would be lost with it.
 *
 * @returns URLs of the pages that were closed.
 */
export async function closeFrozenPages(cdpUrl: string, signal: AbortSignal): Promise<string[]> {
  const socket = await Socket.open(cdpUrl, signal);
  const cut = () => socket.cut('closed-by-us');
  signal.addEventListener('abort', cut, { once: true });
  try {
    const cdp = new CdpClient(socket);
    const { targetInfos } = await cdp.send<{ targetInfos: TargetInfo[] }>('Target.getTargets');
    const pages = targetInfos.filter(({ type }) => type === 'page');
    const answered = await Promise.all(pages.map(({ targetId }) => answers(cdp, targetId)));
    const frozen = pages.filter((_page, index) => !answered[index]);
    signal.throwIfAborted();
    await Promise.all(frozen.map(({ targetId }) => cdp.send('Target.closeTarget', { targetId })));
    return frozen.map(({ url }) => url);
  } finally {
    signal.removeEventListener('abort', cut);
    socket.close('closed-by-us');
  }
}

interface TargetInfo {
  targetId: string;
  type: string;
  url: string;
}

async function answers(cdp: CdpClient, targetId: string): Promise<boolean> {
  const { sessionId } = await cdp.send<{ sessionId: string }>('Target.attachToTarget', { targetId, flatten: true });
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
