import type { Random } from '../support/random.js';

/** What can go wrong around the library, by where it does. */
export const FAULTS = [
  'http: refused',
  'http: broken handshake',
  'http: reset before it was heard',
  'http: reset after it was done',
  'http: no answer',
  'http: no answer, but done',
  'http: slow',
  'http: 401',
  'http: 404',
  'http: 429',
  'http: 500',
  'http: 500, but done',
  'http: 503',
  'http: redirect',
  'http: web page',
  'http: empty',
  'http: broken body',
  'http: dripping body',
  'http: body without an end',
  'http: field missing',
  'acquire: answered too soon',
  'acquire: grant after the client hung up',
  'release: for a while not possible',
  'release: never possible',
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
  'connect: frozen page',
  'load: library missing',
  'page: throws',
  'page: hangs',
  'page: not to be used again',
  'page close: throws',
  'page close: hangs',
  'cleanup: throws',
  'cleanup: hangs',
  'disconnect: throws',
  'disconnect: hangs',
  'callback: throws',
  'callback: throws undefined',
  'callback: hangs',
  'callback: closes the browser',
  'caller: aborts',
  'listener: throws',
] as const;

export type Fault = (typeof FAULTS)[number];

export type Rates = ReadonlyMap<Fault, number>;

/** Some faults, each as often as it likes: a world of every fault at once would never get far. */
export function drawRates(random: Random): Rates {
  const most = random.pick([0, 0.02, 0.05, 0.2]);
  const share = random.pick([0.1, 0.3, 0.6]);
  const rates = FAULTS.map((fault): [Fault, number] => [fault, random.chance(share) ? most : 0]);
  return new Map(rates.filter(([, rate]) => rate > 0));
}
