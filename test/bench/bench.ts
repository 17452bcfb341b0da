import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** Reads a number from the environment. The first comment of each benchmark lists its variables. */
export function setting(name: string, fallback: number): number {
  return Number(process.env[name] ?? fallback);
}

/** Measures one round: a number for each figure that applies. */
export type Way<Figure extends string> = () => Promise<Partial<Record<Figure, number>>>;

export interface Comparison<Figure extends string> {
  /** The measured work, for the first column. */
  subject: string;
  ways: Record<string, Way<Figure>>;
  /** The unit of each figure. */
  units: Record<Figure, string>;
  /** The ways with which all ways are compared. */
  peers?: readonly string[];
  rounds: number;
  /** Number of warm-up rounds, which do not count. */
  warmUp?: number;
  beforeRound?: (round: number) => Promise<void>;
}

/** Measures all ways in turn, and returns the rows of a table: median and spread, and how each way compares with its peers. */
export async function compare<Figure extends string>(comparison: Comparison<Figure>): Promise<string[][]> {
  const { subject, ways, units, peers = [], rounds, warmUp = 1, beforeRound } = comparison;
  const names = Object.keys(ways);
  const figures = Object.keys(units) as Figure[];
  const samples = new Map<string, number[]>();
  for (let round = 0; round < warmUp + rounds; round++) {
    await beforeRound?.(round);
    // Each way is first equally often, so that a busy moment affects all of them.
    for (const index of names.keys()) {
      const name = names[(index + round) % names.length]!;
      const measured = await ways[name]!();
      for (const figure of round < warmUp ? [] : figures) {
        const key = `${figure} ${name}`;
        samples.set(key, [...(samples.get(key) ?? []), measured[figure] ?? Number.NaN]);
      }
    }
  }
  return figures.flatMap((figure) =>
    names.map((name) => {
      const values = samples.get(`${figure} ${name}`)!;
      const against = peers.map((peer) => {
        const theirs = samples.get(`${figure} ${peer}`);
        const difference = theirs ? median(values) - median(theirs) : Number.NaN;
        if (peer === name || Number.isNaN(difference)) return '';
        return `${difference < 0 ? '' : '+'}${show(difference)}, ×${(median(values) / median(theirs!)).toFixed(2)}`;
      });
      const spread = `${show(percentile(values, 5))} to ${show(percentile(values, 95))}`;
      return [subject, name, figure, `${show(median(values))} ${units[figure]}`, spread, ...against];
    }),
  );
}

/** Prints rows of `compare` as a table in Markdown. */
export function printComparison(rows: readonly string[][], peers: readonly string[] = []): void {
  const known = rows.filter((row) => !row[3]!.startsWith('NaN'));
  printTable(['', 'way', 'figure', 'median', 'p5 to p95', ...peers.map((peer) => `against ${peer}`)], known);
}

export function printTable(head: readonly string[], rows: readonly (readonly (string | number)[])[]): void {
  const lines = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`);
  console.log(`\n${lines.join('\n')}\n`);
}

/** Formats a number with about three digits. */
function show(value: number): string {
  const size = Math.abs(value);
  if (size >= 100) return value.toFixed(0);
  return value.toFixed(size >= 10 ? 1 : 2);
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))]!;
}

/** Returns the duration of the work in ms. */
export async function time(work: () => unknown): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

/** The address and the token of a service. */
export interface Service {
  baseUrl: string;
  token: string;
}

/**
 * Serves one local pool, `bench`, from another process, so that only the client is measured. Needs `dist/`.
 *
 * @param flags Further flags of `pooled-browser serve`.
 */
export async function servePool(
  size = 1,
  flags: readonly string[] = [],
  onEvent: (line: string) => void = () => {},
): Promise<AsyncDisposable & { service: Service; pid: number }> {
  const cli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
  const { BROWSER_POOL_ACCESS_TOKEN: _token, ...env } = process.env;
  const args = [cli, 'serve', '--json', '--pool', `bench=${size}`, ...flags];
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout });
  const [line] = (await once(lines, 'line')) as [string];
  lines.on('line', onEvent);
  const { baseUrl, token } = JSON.parse(line) as Service;
  return {
    service: { baseUrl, token },
    pid: child.pid!,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
}

/** Serves `programs/app.mjs` from another process, until `app.kill()`. */
export async function serveApp(): Promise<{ app: ChildProcess; port: string; site: string }> {
  const path = fileURLToPath(new URL('programs/app.mjs', import.meta.url));
  const app = spawn(process.execPath, [path], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [port] = (await once(createInterface({ input: app.stdout }), 'line')) as [string];
  return { app, port, site: `http://127.0.0.1:${port}` };
}
