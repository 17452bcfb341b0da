import { getEventListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { OutageGate } from '../../src/service/outage-gate.js';
import { settle } from '../support/played-browser.js';
import { rejection } from './support.js';

const DOWN = new Error('the service is down');
const REFUSED = new Error('the service refused');
const never = new AbortController().signal;

/** Callers of one gate, whose requests the test answers. */
class Callers {
  /** Names of the callers whose request is sent, in order. */
  readonly sent: string[] = [];
  readonly outcomes: [caller: string, outcome: unknown][] = [];
  readonly #gate: OutageGate;
  readonly #requests = new Map<string, { resolve(): void; reject(error: Error): void }>();

  constructor(gate = new OutageGate()) {
    this.#gate = gate;
  }

  async call(caller: string, signal = never, pause = 1): Promise<void> {
    const send = () => {
      this.sent.push(caller);
      return new Promise<string>((resolve, reject) => {
        this.#requests.set(caller, { resolve: () => resolve('done'), reject });
      });
    };
    const backoff = { factor: 1, minTimeout: pause, maxTimeout: pause, randomize: false };
    const running = this.#gate.run({ send, isOutage: (error) => error === DOWN, backoff, signal });
    const ended = (outcome: unknown) => void this.outcomes.push([caller, outcome]);
    running.then(ended, ended);
    await settle();
  }

  async succeed(caller: string): Promise<void> {
    this.#requests.get(caller)!.resolve();
    await settle();
  }

  async fail(caller: string, error = DOWN): Promise<void> {
    this.#requests.get(caller)!.reject(error);
    await settle();
  }

  /** Begins an outage: the request of one caller fails. */
  async beginOutage(): Promise<void> {
    await this.call('first');
    await this.fail('first');
    this.sent.length = 0;
    this.outcomes.length = 0;
  }

  async waitForSent(...callers: string[]): Promise<void> {
    await expect.poll(() => this.sent).toEqual(callers);
  }
}

it('sends every request immediately while the service works, and after a refusal', async () => {
  const callers = new Callers();
  for (const caller of ['a', 'b']) await callers.call(caller);
  expect(callers.sent).toEqual(['a', 'b']);
  await callers.fail('a', REFUSED);
  await callers.call('c');
  expect(callers.sent).toEqual(['a', 'b', 'c']);
  expect(callers.outcomes).toEqual([['a', REFUSED]]);
});

describe('during an outage', () => {
  it('one caller at a time sends a request, in order of arrival', async () => {
    const callers = new Callers();
    await callers.beginOutage();
    for (const caller of ['a', 'b', 'c']) await callers.call(caller);
    await callers.waitForSent('a');
    await callers.fail('a');
    await callers.waitForSent('a', 'b');
    await callers.fail('b');
    await callers.waitForSent('a', 'b', 'c');
    expect(callers.outcomes).toEqual([
      ['a', DOWN],
      ['b', DOWN],
    ]);
  });

  it('a request follows the last failure after the backoff', async () => {
    const callers = new Callers();
    await callers.beginOutage();
    await callers.call('a', never, 60_000);
    await sleep(50);
    expect(callers.sent).toEqual([]);
  });

  it.each(['of the caller whose turn it is', 'that was sent before the outage'])(
    'all others follow a success %s',
    async (which) => {
      const callers = new Callers();
      await callers.call('early');
      await callers.beginOutage();
      for (const caller of ['a', 'b', 'c']) await callers.call(caller);
      await callers.waitForSent('a');
      await callers.succeed(which === 'that was sent before the outage' ? 'early' : 'a');
      expect(callers.sent.toSorted()).toEqual(['a', 'b', 'c']);
    },
  );

  it('a refusal shows that the service works', async () => {
    const callers = new Callers();
    await callers.beginOutage();
    for (const caller of ['a', 'b']) await callers.call(caller);
    await callers.waitForSent('a');
    await callers.fail('a', REFUSED);
    expect(callers.sent).toEqual(['a', 'b']);
  });
});

describe('a caller that aborts', () => {
  it('during its pause passes the turn on', async () => {
    const callers = new Callers();
    await callers.beginOutage();
    const caller = new AbortController();
    await callers.call('a', caller.signal, 60_000);
    await callers.call('b');
    caller.abort('left');
    await callers.waitForSent('b');
    expect(callers.outcomes).toEqual([['a', 'left']]);
  });

  it('while it waits leaves the order of the others, and no listener', async () => {
    const callers = new Callers();
    await callers.beginOutage();
    const caller = new AbortController();
    await callers.call('a');
    await callers.call('b', caller.signal);
    await callers.call('c');
    caller.abort('left');
    await settle();
    await callers.waitForSent('a');
    await callers.fail('a');
    await callers.waitForSent('a', 'c');
    expect(callers.outcomes).toContainEqual(['b', 'left']);
    expect(getEventListeners(caller.signal, 'abort')).toEqual([]);
  });

  it('when its turn has just come passes the turn on', async () => {
    const callers = new Callers();
    await callers.beginOutage();
    const caller = new AbortController();
    await callers.call('a');
    await callers.call('b', caller.signal);
    await callers.call('c');
    await callers.waitForSent('a');
    const failed = callers.fail('a');
    caller.abort('left');
    await failed;
    await callers.waitForSent('a', 'c');
    expect(callers.outcomes).toContainEqual(['b', 'left']);
  });

  it('during its request says nothing about the service', async () => {
    const callers = new Callers();
    await callers.beginOutage();
    const caller = new AbortController();
    await callers.call('a', caller.signal);
    await callers.call('b');
    await callers.waitForSent('a');
    caller.abort('left');
    await callers.fail('a', new Error('aborted'));
    await callers.waitForSent('a', 'b');
  });

  it('alone leaves a gate that lets the next one send', async () => {
    const gate = new OutageGate();
    const callers = new Callers(gate);
    await callers.beginOutage();
    const caller = new AbortController();
    const backoff = { factor: 1, minTimeout: 60_000, maxTimeout: 60_000, randomize: false };
    const leaving = rejection(
      gate.run({ send: async () => 'sent', isOutage: () => false, backoff, signal: caller.signal }),
    );
    caller.abort();
    await leaving;
    await callers.call('next');
    await callers.waitForSent('next');
  });
});
