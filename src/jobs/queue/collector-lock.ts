import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { clock, delay } from '../../shared/clock.js';
import { QueueError } from '../../shared/lease-errors.js';
import { excerpt } from '../../shared/redact.js';
import type { InputQueue } from './input-lists.js';
import { createAbort } from '../../shared/globals.js';

/** Time in ms after which the lock of a dead process is free. */
const DURATION = 10_000;
const RENEWAL = 2000;
const PAUSE = 250;

/** Extends a lock, or takes a free one: Redis may have been away for longer than the lock lasts. */
const RENEW = `
  local holder = redis.call('GET', KEYS[1])
  if holder and holder ~= ARGV[1] then return {holder, redis.call('PTTL', KEYS[1])} end
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return {ARGV[1], tonumber(ARGV[2])}`;

const UNLOCK = `if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end`;

/** Makes sure that one process at a time collects the outcomes of a queue: two would each get a part of them. */
export class CollectorLock implements AsyncDisposable {
  readonly #queue: InputQueue;
  readonly #key: string;
  readonly #holder = `process ${process.pid} on ${hostname()} (${randomUUID()})`;
  readonly #lost = createAbort();
  #timer: NodeJS.Timeout | undefined;

  /**
   * Waits for the lock of a process that was killed.
   *
   * @throws `QueueError` if another process collects.
   */
  static async take(queue: InputQueue, signal: AbortSignal | undefined): Promise<CollectorLock> {
    const lock = new CollectorLock(queue);
    for (let last = DURATION; ;) {
      const { holder, timeLeft } = await lock.#renew();
      if (holder === lock.#holder) break;
      // A live process renews its lock. One without an end would never be free.
      if (timeLeft > last || timeLeft < 0) throw lock.#inUse(holder);
      last = timeLeft;
      await delay(PAUSE, signal);
    }
    lock.#timer = clock.setInterval(() => void lock.#keep(), RENEWAL);
    return lock;
  }

  private constructor(queue: InputQueue) {
    this.#queue = queue;
    this.#key = queue.queue.toKey('pooled-browser:collector');
  }

  /** Aborts with a `QueueError` when another process has taken the lock. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clock.clearInterval(this.#timer);
    const { client } = this.#queue.redis;
    await this.#queue.redis.guard(client.eval(UNLOCK, 1, this.#key, this.#holder)).catch(() => {});
  }

  async #keep(): Promise<void> {
    const { holder } = await this.#renew().catch(() => ({ holder: this.#holder }));
    if (holder !== this.#holder) this.#lost.abort(this.#inUse(holder));
  }

  async #renew(): Promise<{ holder: string; timeLeft: number }> {
    const { client } = this.#queue.redis;
    const answer = client.eval(RENEW, 1, this.#key, this.#holder, DURATION);
    const [holder, timeLeft] = (await this.#queue.redis.guard(answer)) as [string, number];
    return { holder, timeLeft };
  }

  #inUse(holder: string): QueueError {
    const by = excerpt(holder.replace(/ \([\w-]+\)$/, ''), 100);
    return new QueueError(
      `The outcomes of the queue ${this.#queue.queue.name} are collected by ${by}. Two collectors would each get a part ` +
        'of them: wait for the other one, or use another queue. Any number of processes can work on a queue.',
    );
  }
}
