import { clock } from '../shared/clock.js';
import type { Protocol } from './connector.js';
import type { AnySocket } from './socket.js';

/** Puppeteer's interface of a connection. */
export interface Transport {
  send(message: string): void;
  close(): void;
  onmessage?: (message: string) => unknown;
  onclose?: () => void;
}

/** Adapts a socket to Puppeteer. */
export function socketTransport(socket: AnySocket, protocol: Protocol): Transport {
  const closesBrowser = protocol === 'bidi' ? '"browser.close"' : '"Browser.close"';
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
  return transport;
}
