import type { Socket } from 'node:net';
import type { Redis, RedisOptions } from 'ioredis';
import { LinkedAbort, raceAbort, raceTimeout } from '../../shared/abort.js';
import { clock, startTimer } from '../../shared/clock.js';
import { environment } from '../../shared/environment.js';
import { InvalidOptionError, sentence } from '../../shared/errors.js';
import { isRecord } from '../../shared/json.js';
import { lazyLibrary } from '../../shared/lazy-library.js';
import { QueueError } from '../../shared/lease-errors.js';
import { hideOwnSecret } from '../../shared/redact.js';
import { isError } from '../../shared/globals.js';
import { loadBullMQ } from './bullmq.js';

const importRedis = lazyLibrary('ioredis', () => import('ioredis'));

/** The address of Redis: a URL, or the options of ioredis. */
export type RedisAddress = string | RedisOptions;

interface RedisSettings {
  readonly connection?: RedisAddress | undefined;
  /** Milliseconds that a lost Redis is waited for. */
  readonly redisTimeout: number;
}

/** Time for the first connection, in ms. */
const FIRST_TIMEOUT = 5000;
/** Time for the last replies, in ms. */
const QUIT_TIMEOUT = 2000;
const LONGEST_PAUSE = 2000;

const OPTIONS = {
  // BullMQ requires it. Commands wait for the next connection, however many attempts it takes.
  maxRetriesPerRequest: null,
  retryStrategy: (times: number) => Math.min(100 * 2 ** times, LONGEST_PAUSE),
};

/** Errors after which another attempt to connect is useless. */
const REFUSED = /^(NOAUTH|WRONGPASS|NOPERM)\b|invalid password/;

/** A connection to Redis that is replaced when it breaks. Commands wait meanwhile. */
export class RedisLink implements AsyncDisposable {
  /** @internal The oldest versions have no type of this name. */
  readonly client: Redis;
  readonly #where: string;
  readonly #timeout: number;
  readonly #gone = new LinkedAbort();
  #timer: NodeJS.Timeout | undefined;
  #lastError = 'it closes the connection';
  #hasConnected = false;

  /** @throws `QueueError` when Redis can't be reached or refuses the password. */
  static async open(settings: RedisSettings): Promise<RedisLink> {
    const address = redisAddress(settings.connection);
    // Both are needed: nothing is sent if one is missing.
    await loadBullMQ();
    const library = await importRedis();
    // Of the oldest versions, the class is only the default export.
    const { Redis = library.default as unknown as typeof library.Redis } = library as Partial<typeof library>;
    const client =
      typeof address === 'string' ? new Redis(address, OPTIONS) : new Redis({ ...address, ...OPTIONS });
    const link = new RedisLink(client, settings.redisTimeout);
    try {
      await link.guard(link.client.ping());
      return link;
    } catch (error) {
      link.client.disconnect();
      throw error;
    }
  }

  private constructor(client: Redis, timeout: number) {
    const { host, port, path, password } = client.options;
    if (password) hideOwnSecret(password);
    this.#where = `Redis at ${path ?? `${host}:${port}`}`;
    this.client = client;
    this.#timeout = timeout;
    client.on('error', (error: Error) => this.#onError(error));
    client.on('close', this.#onClose);
    client.on('ready', () => {
      this.#hasConnected = true;
      clock.clearTimeout(this.#timer);
      this.#timer = undefined;
    });
    this.#wait(Math.min(timeout, FIRST_TIMEOUT));
  }

  /** Settles as the commands do, or rejects with a `QueueError` when Redis refuses one or stays away too long. */
  async guard<T>(commands: Promise<T>): Promise<T> {
    try {
      return await raceAbort(commands, this.#gone.signal);
    } catch (error) {
      if (!isError(error) || error.name !== 'ReplyError') throw error;
      throw new QueueError(`${this.#where} refuses a command: ${sentence(error.message)}`, { cause: error });
    }
  }

  /** Sends the commands of this iteration of the event loop together: one by one, they take a third of the time of a busy worker. */
  batch(): void {
    // Undefined while there is no connection.
    const { stream } = this.client as { stream?: Socket };
    if (!stream || stream.writableCorked > 0) return;
    stream.cork();
    clock.setImmediate(() => stream.uncork());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clock.clearTimeout(this.#timer);
    const { client } = this;
    client.off('close', this.#onClose);
    if (client.status === 'ready') await raceTimeout(QUIT_TIMEOUT, () => client.quit()).catch(() => {});
    client.disconnect();
  }

  readonly #onClose = (): void => this.#wait(this.#timeout);

  #onError(error: Error): void {
    this.#lastError = error.message;
    if (REFUSED.test(error.message))
      this.#failConnection(`${this.#where} refuses the connection`, PASSWORD_HINT);
  }

  #wait(timeout: number): void {
    this.#timer ??= startTimer(timeout, () => {
      const time = `${timeout / 1000} s`;
      if (this.#hasConnected)
        this.#failConnection(`${this.#where} has been unreachable for ${time}`, LOST_HINT);
      else this.#failConnection(`${this.#where} could not be reached within ${time}`, ADDRESS_HINT);
    });
  }

  #failConnection(message: string, hint: string): void {
    clock.clearTimeout(this.#timer);
    this.#gone.abort(new QueueError(`${message}: ${sentence(this.#lastError)} ${hint}`));
    this.client.disconnect();
  }
}

const ADDRESS_HINT = 'Start Redis, or set REDIS_URL (or the option connection) to its address.';
const PASSWORD_HINT = 'Pass user and password in REDIS_URL or in the option connection.';
const LOST_HINT =
  'The inputs and results in it are kept if it stores them (appendonly yes). Start Redis, then start this program again.';

/** Returns the address that was passed, or else that of the environment. */
function redisAddress(passed: RedisAddress | undefined): RedisAddress {
  const address = passed ?? environment.redisUrl();
  if (address === undefined) throw new InvalidOptionError('connection', NO_ADDRESS);
  const fault = faultOfAddress(address);
  if (fault !== undefined) throw new InvalidOptionError('connection', `REDIS_URL ${fault}.`);
  return address;
}

const NO_ADDRESS =
  'The queue needs Redis: set REDIS_URL, such as redis://127.0.0.1:6379, or pass the option connection.';

/** Finds out why a value is no address. The message does not show the value, which may contain a password. */
export function faultOfAddress(value: unknown): string | undefined {
  if (typeof value !== 'string') return isRecord(value) ? undefined : 'must be a URL or ioredis options';
  if (/^rediss?:\/\/./.test(value) && URL.canParse(value)) return undefined;
  return 'must be a URL that begins with redis:// or rediss://, such as redis://127.0.0.1:6379';
}
