import type { Random } from '../support/random.js';

/** The faults around the library, by their place. */
export const FAULTS = [
  'http: refused',
  'http: broken handshake',
  'http: reset before processing',
  'http: reset after processing',
  'http: no answer',
  'http: no answer, but processed',
  'http: slow',
  'http: 401',
  'http: 404',
  'http: 429',
  'http: 500',
  'http: 500, but processed',
  'http: 503',
  'http: redirect',
  'http: web page',
  'http: empty',
  'http: broken body',
  'http: dripping body',
  'http: endless body',
  'http: field missing',
  'acquire: answered too early',
  'acquire: granted after the client disconnected',
  'release: temporarily unavailable',
  'release: never available',
  'recording: refused',
  'recording: slow',
  'recording: never written',
  'token: slow',
  'token: throws',
  'token: hangs',
  'upgrade: refused',
  'upgrade: no answer',
  'upgrade: slow',
  'socket: dropped',
  'socket: closed by the service',
  'socket: expired',
  'socket: half-open',
  'socket: slow to close',
  'connect: throws',
  'connect: hangs',
  'connect: slow',
  'connect: unresponsive page',
  'load: library missing',
  'page: throws',
  'page: hangs',
  'page: not reusable',
  'page close: throws',
  'page close: hangs',
  'page: starts a worker',
  'browser: command fails',
  'browser: command hangs',
  'browser: closed page opens another one',
  'browser: worker survives',
  'cleanup: throws',
  'cleanup: hangs',
  'disconnect: throws',
  'disconnect: hangs',
  'callback: throws',
  'callback: throws undefined',
  'callback: hangs',
  'callback: closes the browser',
  'callback: works on after its end',
  'caller: aborts',
  'listener: throws',
] as const;

export type Fault = (typeof FAULTS)[number];

export type Rates = ReadonlyMap<Fault, number>;

/** Draws some faults, each with its own rate. In a world with all faults, most calls would fail early. */
export function drawRates(random: Random): Rates {
  const most = random.pick([0, 0.02, 0.05, 0.2]);
  const share = random.pick([0.1, 0.3, 0.6]);
  const rates = FAULTS.map((fault): [Fault, number] => [fault, random.chance(share) ? most : 0]);
  return new Map(rates.filter(([, rate]) => rate > 0));
}
