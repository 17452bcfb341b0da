import type { Protocol } from './protocol.js';
import type { Socket } from './socket.js';

/** Puppeteer's idea of a connection to a browser. */
export interface Transport {
  send(message: string): void;
  close(): void;
  onmessage?: (message: string) => unknown;
  onclose?: () => void;
}

/** Our socket as Puppeteer wants it. */
export function socketTransport(socket: Socket, protocol: Protocol): Transport {
  const closesBrowser = protocol === 'bidi' ? '"browser.close"' : '"Browser.close"';
  let hasEnded = false;
  const transport: Transport = {
    send(message) {
      // A driver that begins, or falls back to CDP, on a socket that has ended would wait for an answer: for minutes.
      if (hasEnded) throw new Error('The websocket has ended');
      // The pool's browser is not the callback's to kill: asked to, the connection ends instead.
      if (message.length < 200 && message.includes(closesBrowser)) socket.close('closed-by-callback');
      else socket.send(message);
    },
    close: () => socket.close('closed-by-callback'),
  };
  socket.onMessage = (data) => transport.onmessage?.(String(data));
  // The lease hears of the end before the driver does: its reason, not the driver's error, ends the run.
  void socket.ended.then(() =>
    setImmediate(() => {
      hasEnded = true;
      transport.onclose?.();
    }),
  );
  return transport;
}
