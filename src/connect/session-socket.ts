import { isRecord, recordOf } from '../shared/json.js';
import { CdpClient } from './cdp-client.js';
import type { AnySocket, Frame } from './socket.js';

/** Longest end of a message with the id of its session, in characters. */
const LONGEST_END = 100;
/** Below the ids of `CdpClient`, and above those of every library. */
const DETACH_ID = 2 ** 30;
/** Chromium writes the session id last. */
const SESSION_END = /,"sessionId":"[^"]+"\}$/;

/**
 * One session of CDP within a socket, as a connection of its own: its messages have no session id. What a client sets in the
 * browser ends with it. A socket has one at a time.
 */
export class SessionSocket implements AnySocket {
  onMessage: AnySocket['onMessage'] = () => {};
  readonly ended: AnySocket['ended'];
  /** Resolves when the session has ended though the socket is open, for example because the page was closed. */
  readonly detached: Promise<void>;
  readonly #outer: AnySocket;
  readonly #sessionId: string;

  /** A session of the browser. */
  static async ofBrowser(outer: AnySocket): Promise<SessionSocket> {
    const attached = clientOf(outer).send<{ sessionId: string }>('Target.attachToBrowserTarget');
    return new SessionSocket(outer, (await attached).sessionId);
  }

  /** @param targetId Default: any page of the browser. */
  static async ofPage(outer: AnySocket, targetId: string | undefined): Promise<SessionSocket> {
    const cdp = clientOf(outer);
    return new SessionSocket(outer, await cdp.attach(targetId ?? (await anyPage(cdp))));
  }

  private constructor(outer: AnySocket, sessionId: string) {
    this.#outer = outer;
    this.#sessionId = sessionId;
    this.ended = outer.ended;
    this.detached = new Promise((resolve) => {
      outer.onMessage = (data) => this.#receive(data, resolve);
    });
  }

  get onSent(): () => void {
    return this.#outer.onSent;
  }

  set onSent(onSent: () => void) {
    this.#outer.onSent = onSent;
  }

  get unsent(): number {
    return this.#outer.unsent;
  }

  pause(): void {
    this.#outer.pause();
  }

  resume(): void {
    this.#outer.resume();
  }

  send(data: string | Frame): void {
    this.#outer.send(JSON.stringify({ sessionId: this.#sessionId, ...recordOf(String(data)) }));
  }

  close(): void {
    this.cut();
  }

  cut(): void {
    const params = { sessionId: this.#sessionId };
    // Nobody waits for the response: the browser handles its commands in order.
    this.#outer.send(JSON.stringify({ id: DETACH_ID, method: 'Target.detachFromTarget', params }));
  }

  #receive(data: Frame, onDetached: () => void): unknown {
    const text = String(data);
    const end = SESSION_END.exec(text.slice(-LONGEST_END))?.[0];
    if (end === `,"sessionId":"${this.#sessionId}"}`)
      return this.onMessage(Buffer.from(`${text.slice(0, -end.length)}}`), false);
    // Of a session that the client has opened.
    if (end !== undefined) return this.onMessage(data, false);
    const { sessionId: from, ...message } = recordOf(text);
    if (from === this.#sessionId) return this.onMessage(Buffer.from(JSON.stringify(message)), false);
    if (from !== undefined) return this.onMessage(data, false);
    // An event of the browser, which the client did not ask for.
    const { method, params } = message;
    const isOver = method === 'Target.detachedFromTarget' && isRecord(params) && params['sessionId'];
    if (isOver === this.#sessionId) onDetached();
    return undefined;
  }
}

/** Opens a URL in the first page of a browser, over CDP. */
export async function openInFirstPage(socket: AnySocket, url: string): Promise<void> {
  const cdp = clientOf(socket);
  const sessionId = await cdp.attach(await anyPage(cdp));
  await cdp.send('Page.navigate', { url }, sessionId);
  await cdp.send('Target.detachFromTarget', { sessionId });
}

async function anyPage(cdp: CdpClient): Promise<string> {
  const page = (await cdp.targets()).find(({ type }) => type === 'page');
  return page?.targetId ?? cdp.openPage();
}

function clientOf(socket: AnySocket): CdpClient {
  return new CdpClient({
    ended: socket.ended,
    send: (message) => socket.send(message),
    listen: (onMessage) => void (socket.onMessage = onMessage),
  });
}
