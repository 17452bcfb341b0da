import { once } from 'node:events';
import { InvalidArgumentError, Option, type Command } from 'commander';
import { environment } from '../shared/environment.js';
import { PROTOCOL_NAMES, type DestroyReason, type LocalPoolEvent } from '../local/events.js';
import type { LocalPoolOptions } from '../local/options.js';
import type { LocalBrowserKind } from '../pool/pool-options.js';
import type { RecordingEnd } from '../recorder/recording-end.js';
import type { Interruption } from './interruption.js';
import { numberAboveZero, wholeNumberArgument } from './options.js';
import { BIDI_LIBRARY, isInstalled, startPool } from './service.js';
import { counted, paintFor, printJson, type Format, type Paint } from './terminal.js';

export function define(command: Command, { signal }: Interruption): void {
  command
    .description('Serves the API of the pool service on 127.0.0.1, with browsers on this machine.')
    .option('--port <port>', 'TCP port; 0 for any free port', wholeNumberArgument(0, 65_535), 0)
    .option('--pool <name[=size]>', 'a pool; can be repeated (default: "default")', addPool)
    .option(
      '--size <browsers>',
      'browsers in each pool for which --pool sets no size',
      wholeNumberArgument(1),
      2,
    )
    .option('--headful', 'show the windows of the browsers')
    .option('--timeout-seconds <n>', 'seconds without a connection that end a lease', numberAboveZero, 60)
    .option('--viewport <width>x<height>', 'size of the browser windows, such as 1920x1080', size)
    .option('--start-url <url>', 'URL that each new browser opens')
    .option('--recordings <folder>', 'folder in which recordings stay; default: they end with the command')
    .addOption(
      new Option('--browser <name>', 'which browser; firefox: WebDriver BiDi only, no recordings')
        .choices(['chromium', 'firefox'])
        .default('chromium'),
    )
    .option('--executable-path <path>', 'path of the browser to run')
    .option('--json', 'print JSON, one line per event')
    .addHelpText('after', HELP)
    .action(async (options: ServeOptions) => serve(options, signal));
}

const HELP = `
The access token is the value of the environment variable BROWSER_POOL_ACCESS_TOKEN, which is not
printed. Without this variable, a random token is created and printed once at the start.
Ctrl-C stops the pools and removes browsers, profiles and sockets. Press Ctrl-C again to quit
immediately.

Examples:
  $ pooled-browser serve
  $ pooled-browser serve --pool tests=4 --pool scrapers=2 --port 4400
  $ pooled-browser serve --size 1 --headful --start-url https://example.com
  $ pooled-browser serve --recordings recordings
  $ pooled-browser serve --json | jq -r .type`;

interface ServeOptions {
  port: number;
  pool?: NamedPool[];
  size: number;
  headful?: true;
  timeoutSeconds: number;
  viewport?: { width: number; height: number };
  startUrl?: string;
  recordings?: string;
  browser: LocalBrowserKind;
  executablePath?: string;
  json?: true;
}

interface NamedPool {
  name: string;
  size?: number;
}

function addPool(text: string, pools: NamedPool[] = []): NamedPool[] {
  const [, name, size] = /^([a-zA-Z0-9._-]{1,255})(?:=(.*))?$/.exec(text) ?? [];
  if (name === undefined) {
    throw new InvalidArgumentError(
      'The name must have 1 to 255 characters of letters, digits, ".", "_" and "-"; =size may follow.',
    );
  }
  return [...pools, { name, ...(size !== undefined && { size: wholeNumberArgument(1)(size) }) }];
}

function size(text: string): { width: number; height: number } {
  const [, width, height] = /^(\d+)x(\d+)$/.exec(text) ?? [];
  if (width === undefined || height === undefined) {
    throw new InvalidArgumentError('The size must be a width and a height in pixels, such as 1280x720.');
  }
  return { width: wholeNumberArgument(1)(width), height: wholeNumberArgument(1)(height) };
}

/** Serves pools until a signal. */
async function serve(options: ServeOptions, signal: AbortSignal): Promise<void> {
  const print = options.json ? printJson : createPrinter(paintFor(process.stdout));
  const ownToken = environment.accessToken();
  // Events before the address are held back: a program that reads the output needs the address first.
  const early: LocalPoolEvent[] = [];
  let isOpen = false;
  const onLog = (event: LocalPoolEvent) => void (isOpen ? print(event) : early.push(event));
  const poolOptions = { ...toPoolOptions(options), token: ownToken, onLog };
  await using pool = await startPool(poolOptions, signal);
  const { baseUrl, token, dashboardUrl } = pool;
  const pools = pool.pools.map((name, index) => ({ name, size: poolOptions.pools[index]!.size }));
  // The token of the environment may be the token of a real service: it is not printed.
  const { browser } = options;
  print({ type: 'serving', browser, baseUrl, dashboardUrl, pools, ...(ownToken === undefined && { token }) });
  early.forEach(print);
  isOpen = true;
  if (!signal.aborted) await once(signal, 'abort');
  process.stderr.write('Stopping.\n');
}

function toPoolOptions({ pool, port, browser, executablePath, size, headful, ...options }: ServeOptions) {
  const { timeoutSeconds, startUrl, viewport, recordings: folder } = options;
  const settings = { headless: !headful, timeoutSeconds, startUrl, viewport };
  const pools = (pool ?? [{ name: 'default' }]).map((named) => ({ size, ...named, ...settings }));
  return { port, browser, executablePath, pools, recording: { folder } } satisfies LocalPoolOptions;
}

/** The first event of `serve`: what a client needs to use the pools. */
interface ServingEvent {
  type: 'serving';
  browser: LocalBrowserKind;
  baseUrl: string;
  /** The token; missing when the environment sets it. */
  token?: string;
  pools: readonly { name: string; size: number }[];
  /** Contains a secret: everybody with this URL sees all browsers. */
  dashboardUrl?: string | undefined;
}

function createPrinter(paint: Paint): (event: ServingEvent | LocalPoolEvent) => void {
  return (event) => {
    if (event.type === 'serving') return void process.stdout.write(`${instructions(event, paint)}\n\n`);
    const line = formatEvent(event, paint);
    const time = paint('dim', new Date().toTimeString().slice(0, 8));
    if (line !== undefined) process.stdout.write(`${time}  ${line}\n`);
  };
}

const WITHOUT_BIDI = `CDP only: WebDriver BiDi needs a package. Install it: npm install ${BIDI_LIBRARY}`;

function instructions({ browser, baseUrl, token, pools, dashboardUrl }: ServingEvent, paint: Paint): string {
  const isFirefox = browser === 'firefox';
  const list = pools.map(({ name, size }) => `${name} (${counted(size, 'browser')})`);
  const known = paint('dim', '# BROWSER_POOL_ACCESS_TOKEN: use the value from this environment.');
  return [
    paint('bold', `Serving ${list.join(', ')} at ${baseUrl}`),
    '',
    'In another terminal:',
    '',
    `  export BROWSER_POOL_BASE_URL=${baseUrl}`,
    token === undefined ? `  ${known}` : `  export BROWSER_POOL_ACCESS_TOKEN=${token}`,
    '',
    'In your code:',
    '',
    `  withPooledBrowser('${pools[0]!.name}', async ({ page }) => { … }${isFirefox ? ", { protocol: 'bidi' }" : ''})`,
    '',
    ...(dashboardUrl === undefined ? [] : ['To watch the browsers, open:', '', `  ${dashboardUrl}`, '']),
    ...(isFirefox || isInstalled(BIDI_LIBRARY) ? [] : [paint('yellow', WITHOUT_BIDI), '']),
    'Press Ctrl-C to stop.',
  ].join('\n');
}

/** Formats an event of a local pool as one line; `undefined` for events that only programs need. */
export function formatEvent(event: LocalPoolEvent, paint: Paint): string | undefined {
  const description = describeEvent(event);
  if (!description) return undefined;
  const [format, what, detail] = description;
  const { sessionId, pool } = event as { sessionId?: string; pool?: string };
  const facts = [sessionId?.slice(0, 8), pool, detail].filter((fact) => fact !== undefined);
  return paint(format, `${what.padEnd('disconnected'.length)}  ${facts.join('  ')}`);
}

type Description = [format: Format, what: string, detail?: string | undefined];

function describeEvent(event: LocalPoolEvent): Description | undefined {
  switch (event.type) {
    case 'browser-started':
      return ['reset', 'started', `process ${event.pid}`];
    case 'browser-start-failed':
      return ['red', 'not started', event.message];
    case 'waiting':
      return ['yellow', 'waiting', event.name];
    case 'leased':
      return ['green', 'leased', event.name];
    case 'released':
      return ['cyan', 'released'];
    case 'browser-destroyed':
      return ['yellow', 'destroyed', REASONS[event.reason]];
    case 'connected':
    case 'disconnected':
      return ['reset', event.type, PROTOCOL_NAMES[event.protocol]];
    case 'recording-started':
      return ['reset', 'recording', event.replayId];
    case 'recording-finished':
      return describeRecording(event);
    case 'request':
      return describeRequest(event);
    default:
      return undefined;
  }
}

const REASONS: Record<DestroyReason, string> = {
  released: 'released without reuse',
  replaced: 'replaced after many leases, or for its memory',
  flushed: 'the pool was flushed',
  deleted: 'deleted',
  inactive: 'no connection for too long',
  exited: 'the browser exited',
  closed: 'the pool closes',
};

type EventOf<Type> = Extract<LocalPoolEvent, { type: Type }>;

function describeRecording(event: EventOf<'recording-finished'>): Description {
  const { replayId, reason, milliseconds, bytes, failure } = event;
  if (failure !== undefined)
    return ['red', 'recorded', `${replayId}, ${bytes === 0 ? 'no video' : 'incomplete'}: ${failure}`];
  const facts = `${replayId}, ${(milliseconds / 1000).toFixed(1)} s, ${(bytes / 1024 / 1024).toFixed(1)} MB`;
  const cause = INCOMPLETE[reason];
  if (cause === undefined) return ['reset', 'recorded', facts];
  return ['yellow', 'recorded', `${facts}, incomplete: ${cause}`];
}

/** The ends of recordings that were not requested. */
const INCOMPLETE: Partial<Record<RecordingEnd, string>> = {
  'disk-limit': 'the recording reached its size limit',
  'disk-full': 'the disk is full',
  'disk-failed': 'the disk failed',
  'browser-gone': 'the browser exited',
};

/** Describes requests that failed or got no browser; other requests have their own events. */
function describeRequest({ method, path, status }: EventOf<'request'>): Description | undefined {
  const request = `${status}  ${method} ${path}`;
  if (status === NO_BROWSER && path.endsWith('/acquire')) return ['reset', 'none free', request];
  if (status === CLIENT_GONE) return ['reset', 'client left', request];
  return status >= 400 ? ['red', 'refused', request] : undefined;
}

const NO_BROWSER = 204;
const CLIENT_GONE = 499;
