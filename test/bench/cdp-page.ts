import { WebSocket } from 'ws';

/** A websocket to a page of a browser. */
export class CdpPage {
  readonly #socket: WebSocket;
  #session = '';
  #id = 0;

  static async open(url: string): Promise<CdpPage> {
    const socket = new WebSocket(url, { perMessageDeflate: false, maxPayload: 0 });
    await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
    const cdp = new CdpPage(socket);
    const { targetInfos } = await cdp.#ask('Target.getTargets', {});
    const page = (targetInfos as { type: string; targetId: string }[]).find(({ type }) => type === 'page')!;
    const attached = await cdp.#ask('Target.attachToTarget', { targetId: page.targetId, flatten: true });
    cdp.#session = String(attached['sessionId']);
    return cdp;
  }

  private constructor(socket: WebSocket) {
    this.#socket = socket;
  }

  evaluate(expression: string): Promise<unknown> {
    return this.#ask('Runtime.evaluate', { expression, returnByValue: true });
  }

  close(): void {
    this.#socket.terminate();
  }

  #ask(method: string, params: object): Promise<Record<string, unknown>> {
    const id = ++this.#id;
    const answered = new Promise<Record<string, unknown>>((resolve) => {
      const onMessage = (data: Buffer) => {
        const message = JSON.parse(String(data)) as { id?: number; result: Record<string, unknown> };
        if (message.id !== id) return;
        this.#socket.off('message', onMessage);
        resolve(message.result);
      };
      this.#socket.on('message', onMessage);
    });
    this.#socket.send(
      JSON.stringify({ id, method, params, ...(this.#session && { sessionId: this.#session }) }),
    );
    return answered;
  }
}
