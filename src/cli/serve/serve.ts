import { once } from 'node:events';
import { InvalidOptionError } from '../../shared/errors.js';
import { environment } from '../../shared/environment.js';
import type { LocalPoolEvent } from '../../local/events.js';
import type { LocalPoolOptions } from '../../local/options.js';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import { interruptible } from '../interruptible.js';
import { paintFor } from '../paint.js';
import { startPool } from '../start-pool.js';
import { describeEvent } from './describe-event.js';
import { instructions, type Serving } from './instructions.js';

/** What the command line says about `serve`. */
export interface ServeOptions {
  port: number;
  pool?: NamedPool[];
  size: number;
  headful?: true;
  timeoutSeconds?: number;
  startUrl?: string;
  executablePath?: string;
  json?: true;
}

export interface NamedPool {
  name: string;
  size?: number;
}

/** Serves until it is told to stop. */
export async function serve(options: ServeOptions): Promise<void> {
  const ownToken = environment.accessToken();
  const print = options.json ? printJson : printText;
  await interruptible(async (signal) => {
    const log = new EventLog(print.event);
    const poolOptions = { ...toPoolOptions(options), token: ownToken, onLog: log.add };
    await using pool = await startPool(poolOptions, signal).catch(explainToken);
    const pools = pool.pools.map((name, index) => ({ name, size: poolOptions.pools[index]!.size }));
    const { baseUrl, token, dashboardUrl } = pool;
    // A token of the environment may be that of a real service: it is known already, and stays there.
    print.start({ baseUrl, dashboardUrl, pools, ...(ownToken === undefined && { token }) });
    log.open();
    if (!signal.aborted) await once(signal, 'abort');
    process.stderr.write('Stopping.\n');
  });
}

function toPoolOptions({ pool, port, size, headful, ...options }: ServeOptions) {
  const { timeoutSeconds, startUrl, executablePath } = options;
  const settings = { headless: !headful, timeoutSeconds, startUrl };
  const pools = (pool ?? [{ name: 'default' }]).map((named) => ({ size, ...named, ...settings }));
  return { port, executablePath, pools } satisfies LocalPoolOptions;
}

function explainToken(error: unknown): never {
  if (!(error instanceof InvalidOptionError && error.option === 'token')) throw error;
  throw new CliError(`BROWSER_POOL_ACCESS_TOKEN: ${error.message}`, EXIT.usage, { cause: error });
}

/** Keeps the first events back until the address has been printed: whoever reads the output needs that first. */
class EventLog {
  readonly #print: (event: LocalPoolEvent) => void;
  #early: LocalPoolEvent[] | undefined = [];

  constructor(print: (event: LocalPoolEvent) => void) {
    this.#print = print;
  }

  readonly add = (event: LocalPoolEvent): void => {
    if (this.#early) this.#early.push(event);
    else this.#print(event);
  };

  open(): void {
    const early = this.#early ?? [];
    this.#early = undefined;
    early.forEach(this.#print);
  }
}

const paint = paintFor(process.stdout);

const printText = {
  start: (serving: Serving) => process.stdout.write(`${instructions(serving, paint)}\n\n`),
  event: (event: LocalPoolEvent) => {
    const line = describeEvent(event, paint);
    if (line === undefined) return;
    const time = new Date().toTimeString().slice(0, 8);
    process.stdout.write(`${paint('dim', time)}  ${line}\n`);
  },
};

const printJson = {
  start: (serving: Serving) => process.stdout.write(`${JSON.stringify({ type: 'serving', ...serving })}\n`),
  event: (event: LocalPoolEvent) => process.stdout.write(`${JSON.stringify(event)}\n`),
};
