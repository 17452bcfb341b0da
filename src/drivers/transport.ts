import { clock } from '../shared/clock.js';
import { CdpClient } from '../wire/cdp-client.js';
import { MalformedMessage, readMessage } from '../wire/message.js';
import type { ClientSocket } from './socket.js';
import type { Message, BrowserProtocol, WireMessage } from '../wire/forms.js';

/** Puppeteer's interface of a connection. */
export interface Transport {
  send(message: string): void;
  close(): void;
  onmessage?: (message: string) => unknown;
  onclose?: () => void;
}

/** Adapts a socket to Puppeteer. Over WebDriver BiDi, the browser may have a session already. */
export function socketTransport(socket: ClientSocket, protocol: BrowserProtocol): Transport {
  const isBidi = protocol === 'bidi';
  const closesBrowser = isBidi ? '"browser.close"' : '"Browser.close"';
  let hasEnded = false;
  const transport: Transport = {
    send(message) {
      // Otherwise Puppeteer would wait for an answer for minutes.
      if (hasEnded) throw new Error('The websocket has ended');
      // A callback that closes the browser closes the connection: the browser belongs to the pool.
      if (message.length < 200 && message.includes(closesBrowser)) socket.close('closed-by-callback');
      else socket.send(message);
    },
    close: () => socket.close('closed-by-callback'),
  };
  socket.onMessage = (data) => transport.onmessage?.(String(data));
  // The lease is notified first, so that its reason ends the run instead of an error of Puppeteer.
  void socket.detached.then(() =>
    clock.setImmediate(() => {
      hasEnded = true;
      transport.onclose?.();
    }),
  );
  return isBidi ? withAnySession(transport) : transport;
}

/**
 * Makes `session.new` work on a BiDi connection that already has a session, by using the existing session. Answers
 * `session.end` without sending it, because it can end the browser, which belongs to the pool.
 */
export function withAnySession(inner: Transport): Transport {
  let newSessionId: number | undefined;
  /** Reads what the existing session is like. */
  let reader: CdpClient | undefined;
  const waiting = new Map<number | undefined, (response: WireMessage | undefined) => void>();

  const answer = (id: number, result: object) =>
    outer.onmessage?.(JSON.stringify({ type: 'success', id, result }));

  const outer: Transport = {
    send(message) {
      const { id, method }: Message = message.includes('"session.') ? readMessage(message) : {};
      if (method === 'session.new') newSessionId = id;
      if (method === 'session.end') void Promise.resolve().then(() => answer(id!, {}));
      else inner.send(message);
    },
    close: () => inner.close(),
  };

  const ended = new Promise<void>((resolve) => {
    inner.onclose = () => {
      resolve();
      outer.onclose?.();
    };
  });
  inner.onmessage = async (text) => {
    // Only the response to session.new is parsed, and what belongs to it.
    if (newSessionId === undefined && !reader) return outer.onmessage?.(text);
    const message = readMessage(text);
    const settle = waiting.get(message.id);
    waiting.delete(message.id);
    if (settle) return settle(message as unknown as WireMessage);
    const { id } = message;
    if (id === undefined || id !== newSessionId) return outer.onmessage?.(text);
    newSessionId = undefined;
    if (message.error !== 'session not created') return outer.onmessage?.(text);
    reader = new CdpClient({
      ended,
      request: (command, settled) => {
        waiting.set(command.id, settled);
        inner.send(JSON.stringify(command));
      },
      listen: () => {},
      close: () => {},
    });
    const capabilities = await describeBrowser(reader);
    reader = undefined;
    // The session of the browser can also be that of another connection, as in Firefox.
    return capabilities ? answer(id, { sessionId: 'existing', capabilities }) : outer.onmessage?.(text);
  };
  return outer;
}

const LONGEST_USER_AGENT = 1000;

/**
 * Returns the capabilities that the response to a successful session.new would contain; undefined if the connection has no
 * session.
 */
async function describeBrowser(cdp: CdpClient): Promise<object | undefined> {
  const tree = await cdp.send('browsingContext.getTree', { maxDepth: 0 }).catch(ignoreRefusal);
  if (!tree) return undefined;
  const context = tree.contexts[0]?.context;
  const script = { expression: 'navigator.userAgent', target: { context }, awaitPromise: false };
  const evaluated =
    context === undefined ? undefined : await cdp.send('script.evaluate', script).catch(ignoreRefusal);
  const value = evaluated?.result?.value;
  // A browser can send any text, and the search below takes the square of its length.
  const userAgent = typeof value === 'string' ? value.slice(0, LONGEST_USER_AGENT) : '';
  const [, name, version = ''] = /(Firefox|Chrom)\w*\/([\d.]+)/.exec(userAgent) ?? [];
  return {
    browserName: name === 'Firefox' ? 'firefox' : 'chrome',
    browserVersion: version,
    userAgent,
    platformName: '',
    acceptInsecureCerts: false,
    setWindowRect: false,
  };
}

function ignoreRefusal(error: unknown): undefined {
  if (error instanceof MalformedMessage) throw error;
}
