import { clock } from '../shared/clock.js';
import {
  readEnvelope,
  readMessage,
  readResult,
  type Envelope,
  type Message,
  type ResultOf,
} from './message.js';
import type { AnySocket } from './socket.js';
import type { Protocol } from './wire.js';

/** Puppeteer's interface of a connection. */
export interface Transport {
  send(message: string): void;
  close(): void;
  onmessage?: (message: string) => unknown;
  onclose?: () => void;
}

/** Adapts a socket to Puppeteer. Over WebDriver BiDi, the browser may have a session already. */
export function socketTransport(socket: AnySocket, protocol: Protocol): Transport {
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

/** Sends a command. Resolves to its result; to undefined if it fails. */
type Ask = <Method extends string>(method: Method, params: object) => Promise<ResultOf<Method> | undefined>;

/** First id of this module's own commands: far above the ids of Puppeteer. */
const FIRST_ID = 2 ** 50;

/**
 * Makes `session.new` work on a BiDi connection that already has a session, by using the existing session. Answers
 * `session.end` without sending it, because it can end the browser, which belongs to the pool.
 */
export function withAnySession(inner: Transport): Transport {
  const own = new Map<number, (message: Message) => void>();
  let nextId = FIRST_ID;
  let newSessionId: number | undefined;

  const ask: Ask = async (method, params) => {
    const response = await new Promise<Message>((resolve) => {
      own.set(nextId, resolve);
      inner.send(JSON.stringify({ id: nextId++, method, params }));
    });
    return response.error === undefined ? readResult(method, response.result) : undefined;
  };

  const answer = (id: number, result: object) =>
    outer.onmessage?.(JSON.stringify({ type: 'success', id, result }));

  const outer: Transport = {
    send(message) {
      const { id, method } = sessionCommand(message);
      if (method === 'session.new') newSessionId = id;
      if (method === 'session.end') queueMicrotask(() => answer(id!, {}));
      else inner.send(message);
    },
    close: () => inner.close(),
  };

  inner.onmessage = (text) => {
    // Only the responses to session.new and to this module's own commands are parsed.
    if (newSessionId === undefined && own.size === 0) return outer.onmessage?.(text);
    const message = readMessage(text);
    const resolve = own.get(message.id!);
    if (resolve) {
      own.delete(message.id!);
      return resolve(message);
    }
    if (message.id !== newSessionId) return outer.onmessage?.(text);
    const id = newSessionId!;
    newSessionId = undefined;
    if (message.error !== 'session not created') return outer.onmessage?.(text);
    return describeBrowser(ask).then((capabilities) => answer(id, { sessionId: 'existing', capabilities }));
  };
  inner.onclose = () => outer.onclose?.();
  return outer;
}

function sessionCommand(message: string): Envelope {
  return (message.includes('"session.') ? readEnvelope(message) : undefined) ?? {};
}

/** Returns the capabilities that the response to a successful session.new would contain. */
async function describeBrowser(ask: Ask): Promise<object> {
  const tree = await ask('browsingContext.getTree', { maxDepth: 0 });
  const context = tree?.contexts?.[0]?.context;
  const evaluated =
    context === undefined
      ? undefined
      : await ask('script.evaluate', {
          expression: 'navigator.userAgent',
          target: { context },
          awaitPromise: false,
        });
  const value = evaluated?.result?.value;
  const userAgent = typeof value === 'string' ? value : '';
  return {
    browserName: 'chrome',
    browserVersion: /Chrom\w*\/([\d.]+)/.exec(userAgent)?.[1] ?? '',
    userAgent,
    platformName: '',
    acceptInsecureCerts: false,
    setWindowRect: false,
  };
}
