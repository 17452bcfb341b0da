import { CdpClient } from './cdp-client.js';
import { contentOf, parseMessage, readEvent, writtenMessage } from './message.js';
import { until } from './until.js';
import type { AnySocket } from './socket.js';
import { textOf, type CdpCarrier, type Frame, type Message, type WireMessage } from './wire.js';

/** Longest end of a message with the id of its session, in bytes. */
const LONGEST_END = 100;
/** Chromium writes the session id last. */
const SESSION_END = /,"sessionId":"([\w-]+)"\}\s*$/;
/** The events from which the sessions of a client are known. */
const ATTACHED = /^Target\.(attachedTo|detachedFrom)Target$/;

/**
 * One session of CDP within a connection, as a connection of its own: its messages have no session id. What a client sets in the
 * browser ends with it.
 */
export class SessionSocket implements AnySocket {
  deliver: AnySocket['deliver'] = () => {};
  readonly sessionId: string;
  readonly ended: AnySocket['ended'];
  /** Resolves when the session has ended though the connection is open, for example because the page was closed. */
  readonly detached: Promise<void>;
  readonly #outer: AnySocket;
  readonly #cdp: CdpClient;
  #detach = () => {};

  constructor(outer: AnySocket, cdp: CdpClient, sessionId: string) {
    this.#outer = outer;
    this.#cdp = cdp;
    this.sessionId = sessionId;
    this.ended = outer.ended;
    this.detached = new Promise((resolve) => (this.#detach = resolve));
    void outer.detached.then(this.#detach);
  }

  onSent(call: () => void): void {
    this.#outer.onSent(call);
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

  set onMessage(receive: AnySocket['onMessage']) {
    this.deliver = ({ data }, isBinary) => receive(data, isBinary);
  }

  send(data: string | Frame): void {
    this.sendRead(parseMessage(data));
  }

  /** @param command Can be of a session that the client has opened. */
  sendRead(command: Message): void {
    const { sessionId = this.sessionId } = command;
    this.#outer.sendRead(writtenMessage({ ...contentOf(command), sessionId }));
  }

  close(): void {
    this.cut();
  }

  cut(): void {
    // Nobody waits for the response: the browser handles its commands in order.
    this.#cdp.send('Target.detachFromTarget', { sessionId: this.sessionId }).catch(() => {});
    this.#detach();
  }

  takeOver(): CdpCarrier {
    return {
      ended: this.detached,
      send: (command) => this.sendRead(command),
      listen: (onMessage) => void (this.deliver = onMessage),
    };
  }

  /** @internal */
  end(): void {
    this.#detach();
  }
}

/** The sessions of several clients within one connection. */
export class Sessions {
  readonly #outer: AnySocket;
  readonly #cdp: CdpClient;
  /** By the ids of their sessions, and of the sessions that their clients have opened. */
  readonly #owners = new Map<string, SessionSocket>();

  /** Over a connection that no library uses. */
  static over(outer: AnySocket): Sessions {
    const cdp = clientOver(outer);
    const sessions = new Sessions(outer, cdp);
    outer.deliver = (message) => cdp.receive(message) || sessions.take(message);
    return sessions;
  }

  /** @param cdp A client of the connection itself. */
  constructor(outer: AnySocket, cdp: CdpClient) {
    this.#outer = outer;
    this.#cdp = cdp;
  }

  async ofBrowser(): Promise<SessionSocket> {
    return this.#add((await this.#cdp.send('Target.attachToBrowserTarget')).sessionId);
  }

  /** Opens a session of a page. @param targetId Default: any page of the browser. */
  async ofPage(targetId: string | undefined): Promise<SessionSocket> {
    return this.#add(await this.#cdp.attach(targetId ?? (await anyPage(this.#cdp))));
  }

  /** Delivers a message of one of the sessions. Returns false for any other message. */
  take(message: WireMessage): boolean {
    const { method = '', sessionId } = message;
    if (this.#owners.size === 0) return false;
    if (ATTACHED.test(method)) return this.#takeTargetEvent(message);
    const owner = sessionId === undefined ? undefined : this.#owners.get(sessionId);
    if (owner) deliver(owner, message);
    return owner !== undefined;
  }

  #add(sessionId: string): SessionSocket {
    const session = new SessionSocket(this.#outer, this.#cdp, sessionId);
    this.#owners.set(sessionId, session);
    void session.detached.then(() => {
      for (const [id, owner] of this.#owners) if (owner === session) this.#owners.delete(id);
    });
    return session;
  }

  /** Reads which client has opened or lost a session. */
  #takeTargetEvent(message: WireMessage): boolean {
    const { method, sessionId: from, params } = message;
    const isAttached = method === 'Target.attachedToTarget';
    const { sessionId } = isAttached
      ? readEvent('Target.attachedToTarget', params)
      : readEvent('Target.detachedFromTarget', params);
    const owner = from === undefined ? undefined : this.#owners.get(from);
    if (sessionId !== undefined && from === undefined) {
      const session = this.#owners.get(sessionId);
      // An event of the connection itself, which the session's client did not ask for.
      if (session?.sessionId === sessionId) {
        if (!isAttached) session.end();
        return true;
      }
    }
    if (!owner) return false;
    if (sessionId !== undefined && isAttached) this.#owners.set(sessionId, owner);
    deliver(owner, message);
    if (sessionId !== undefined && !isAttached) this.#owners.delete(sessionId);
    return true;
  }
}

/** Passes a message to a client, without the id of the client's own session. */
function deliver(owner: SessionSocket, message: WireMessage): void {
  const { data, sessionId } = message;
  if (sessionId !== owner.sessionId) return void owner.deliver(message, false);
  const end = SESSION_END.exec(textOf(data, -LONGEST_END))?.[0];
  const own = { sessionId: undefined };
  if (end === undefined) return void owner.deliver(writtenMessage({ ...contentOf(message), ...own }), false);
  const rest = Buffer.concat([data.subarray(0, -end.length), Buffer.from('}')]);
  owner.deliver({ ...message, ...own, data: rest }, false);
}

/**
 * Opens a URL in the first page of a browser, over CDP.
 *
 * @throws If it can't be loaded. The page is blank then: the browser's error page would interrupt the next navigation.
 */
export async function openInFirstPage(socket: AnySocket, url: string): Promise<void> {
  const cdp = clientOver(socket);
  const sessionId = await cdp.attach(await anyPage(cdp));
  const { errorText } = await cdp.send('Page.navigate', { url }, sessionId);
  if (errorText !== undefined) await until(NOT_BLANK, () => makeBlank(cdp, sessionId));
  await cdp.send('Target.detachFromTarget', { sessionId });
  if (errorText !== undefined) throw new Error(`The page could not be loaded: ${errorText}.`);
}

const NOT_BLANK = 'The page does not become blank.';

async function makeBlank(cdp: CdpClient, sessionId: string): Promise<boolean> {
  await cdp.send('Page.navigate', { url: 'about:blank' }, sessionId);
  const { frameTree } = await cdp.send('Page.getFrameTree', {}, sessionId);
  return frameTree.frame.url === 'about:blank';
}

async function anyPage(cdp: CdpClient): Promise<string> {
  const page = (await cdp.targets()).find(({ type }) => type === 'page');
  return page?.targetId ?? cdp.openPage();
}

/** A client of a connection that nobody else reads. */
export function clientOver(socket: AnySocket): CdpClient {
  return new CdpClient({
    ended: socket.ended,
    send: (command) => socket.sendRead(writtenMessage(command)),
    listen: (onMessage) => void (socket.deliver = onMessage),
  });
}
