import type { Command } from 'commander';
import { ConnectError, AcquireTimeoutError } from '../shared/lease-errors.js';
import { PoolConnectionError, PoolServiceError } from '../shared/service-errors.js';
import { environment } from '../shared/environment.js';
import type { Case, DoctorCheck, Result } from './doctor-checks.js';
import { EXIT, ExitStatus, NO_ADDRESS } from './errors.js';
import { InvalidOptionError } from '../shared/errors.js';
import type { Interruption } from './interruption.js';
import { ABOUT_TOKEN, addServiceOption, timeout } from './options.js';
import { printable } from '../shared/redact.js';
import { paintFor, printJson, type Paint } from './terminal.js';
import { isError } from '../shared/globals.js';

export function define(command: Command, { signal }: Interruption): void {
  addServiceOption(command)
    .description('Checks everything that a lease needs, step by step, and prints how to correct each fault.')
    .argument(
      '[pool]',
      'id or name of a pool to lease from, or several (default: BROWSER_POOL); without a pool, nothing is leased',
      environment.pool(),
    )
    .option('--lease', 'lease one browser, once; a service without pools needs no pool')
    .addOption(timeout('--acquire-timeout <time>', 'time that each lease may wait for a browser', '15s'))
    .option('--json', 'print JSON')
    .addHelpText('after', HELP)
    .action(async (pool: string | undefined, options: object) =>
      doctor({ ...options, pool, signal } as DoctorOptions),
    );
}

const HELP = `
doctor checks the version of Node, the installed libraries, the address and the answer of the
service, the token and the pool. Then it leases a browser with each library and protocol, calculates
1 + 1 in a page, and releases the browser. The exit code is 0 when nothing is wrong, otherwise 1.

How a program gets a browser of the pool:
  leaseBrowser, withPooledBrowser   your own TypeScript or JavaScript
  pooled-browser exec               one program in any language, for its whole time; --lazy: from
                                    its first connection
  pooled-browser proxy              programs that connect by URL, such as MCP servers, also many: a
                                    browser for each connection
${ABOUT_TOKEN}

Examples:
  $ pooled-browser doctor
  $ pooled-browser doctor scrapers
  $ pooled-browser doctor --service browserbase --lease
  $ pooled-browser doctor scrapers --json | jq '.checks[] | select(.status == "failed")'`;

interface DoctorOptions extends Case {
  json?: true;
}

/** Runs all checks and prints each finding. Exits with a failure when a check failed. */
async function doctor({ json, ...on }: DoctorOptions): Promise<void> {
  // A wrong flag is an error of the command, not a finding.
  if (on.service !== undefined) await (await import('./service.js')).serviceOf(on).catch(refuseUsage);
  const paint = paintFor(process.stdout);
  const print = (text: string) => void (json || process.stdout.write(`${text}\n`));
  const cases = on.pool === undefined ? [on] : await casesOf(on.pool, on);
  const checks: Finding[] = [];
  for (const one of cases) {
    const pool = cases.length > 1 ? one.pool : undefined;
    if (pool !== undefined) print(paint('bold', `${checks.length === 0 ? '' : '\n'}${pool}`));
    const found = await examine(one, (finding) => print(describeFinding(finding, paint)));
    checks.push(...found.map((finding) => (pool === undefined ? finding : { pool, ...finding })));
  }
  const ok = checks.every(({ status }) => status !== 'failed');
  if (json) printJson({ ok, checks });
  if (!ok) throw new ExitStatus(EXIT.failed);
}

function refuseUsage(error: unknown): void {
  const isMissing = error instanceof InvalidOptionError && error.option !== 'service';
  if (!isMissing && !(isError(error) && error.message === NO_ADDRESS)) throw error;
}

async function casesOf(list: string, on: Case): Promise<Case[]> {
  const { namedPools } = await import('./service.js');
  return (await namedPools(list, on)).map(({ name, ...at }) => ({ ...on, ...at, pool: name }));
}

interface Finding extends Result {
  /** The pool, of several. */
  pool?: string;
  check: string;
  /** Duration of the check in ms. */
  elapsed: number;
}

/** Runs the checks in order; after a required check that failed, the others are skipped. */
async function examine(on: Case, onFinding: (finding: Finding) => void): Promise<Finding[]> {
  const { CHECKS } = await import('./doctor-checks.js');
  const findings: Finding[] = [];
  let missing: string | undefined;
  for (const check of CHECKS) {
    const finding = missing === undefined ? await perform(check, on) : skip(check, missing);
    on.signal.throwIfAborted();
    if (check.isRequired && finding.status === 'failed') missing ??= check.name;
    findings.push(finding);
    onFinding(finding);
  }
  return findings;
}

async function perform({ name, run }: DoctorCheck, on: Case): Promise<Finding> {
  const start = performance.now();
  const result = await Promise.resolve(on).then(run).catch(diagnose);
  return { check: name, ...result, elapsed: Math.round(performance.now() - start) };
}

function skip({ name }: DoctorCheck, missing: string): Finding {
  return { check: name, status: 'skipped', detail: `skipped: needs ${missing}`, elapsed: 0 };
}

function diagnose(error: unknown): Result {
  const advice = adviceFor(error);
  const detail = isError(error) ? error.message : String(error);
  return { status: 'failed', detail, ...(advice !== undefined && { advice }) };
}

/** Returns what to do about an error; `undefined` where the error's own message contains it. */
function adviceFor(error: unknown): string | undefined {
  if (error instanceof PoolConnectionError) return adviceForNetwork(error);
  if (error instanceof AcquireTimeoutError) {
    if (error.cause instanceof PoolConnectionError) return adviceForNetwork(error.cause);
    return (
      'All browsers may be leased: see the counts of the pool above. A lease that is not released ends after ' +
      'its inactivity timeout. To wait longer, pass --acquire-timeout.'
    );
  }
  if (error instanceof ConnectError) {
    // The message of the service says what is missing there.
    if (error.status === NOT_IMPLEMENTED) return undefined;
    const other =
      error.status === undefined
        ? 'a service that returns addresses of another network'
        : 'a service that refuses the token in its own WebSocket URL';
    return (
      'The service can be reached, but its browser cannot. Possible causes are a proxy or firewall that blocks ' +
      `WebSockets, or ${other}.`
    );
  }
  const isServerError = error instanceof PoolServiceError && error.status >= 500;
  return isServerError ? 'The service has an internal problem. Try again later.' : undefined;
}

const NOT_IMPLEMENTED = 501;

function adviceForNetwork({ cause, isPermanent }: PoolConnectionError): string | undefined {
  // Its message says what to correct.
  if (isPermanent) return undefined;
  const { code = '', name } = (cause ?? {}) as NodeJS.ErrnoException;
  if (name === 'ProxyError')
    return 'Check HTTPS_PROXY, and that the proxy runs. NO_PROXY names hosts that need no proxy.';
  return NETWORK_ADVICE.find(([pattern]) => pattern.test(code))![1];
}

const NETWORK_ADVICE: readonly (readonly [RegExp, string])[] = [
  [/ENOTFOUND|EAI_AGAIN/, 'The host name is unknown. Check the address and the name server.'],
  [
    /ECONNREFUSED/,
    'Nothing listens at this address. Check the address and the port, and that the service runs.',
  ],
  [/^/, 'Check the address, and that this network can reach it.'],
];

const SIGNS = { ok: '✓', note: '!', failed: '✗', skipped: '-' } as const;
const FORMATS = { ok: 'green', note: 'yellow', failed: 'red', skipped: 'dim' } as const;
const WIDTH = 'puppeteer bidi'.length;

/** Formats a finding: the first line of its detail, then the other lines and the advice, indented. */
function describeFinding({ check, status, detail, advice, elapsed }: Finding, paint: Paint): string {
  const time = status === 'skipped' ? '' : paint('dim', ` (${elapsed} ms)`);
  const [first, ...rest] = detail.split('\n').map(printable);
  const head = `${paint(FORMATS[status], `${SIGNS[status]} ${check.padEnd(WIDTH)}`)}  ${first}${time}`;
  const lines = advice === undefined ? rest : [...rest, `-> ${printable(advice)}`];
  return [head, ...lines.map((line) => `${' '.repeat(WIDTH + 4)}${line}`)].join('\n');
}
