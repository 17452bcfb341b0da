import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Option, type Command } from 'commander';
import type { ProxyEvent, RunEvent } from '../calls/events.js';
import type { PoolProxy } from '../calls/serve-proxy.js';
import { placeFile } from '../features/files.js';
import type { BrowserPool } from '../pool/browser-pool.js';
import { duration } from '../shared/errors.js';
import type { Interruption } from './interruption.js';
import { createLeaseLog, describeReplays } from './lease.js';
import { LiveLines } from './live-lines.js';
import {
  ABOUT_TOKEN,
  addLeaseOptions,
  addPoolArgument,
  addReachOptions,
  leaseSettings,
  recordAll,
  time,
  timeOrNone,
  timeout,
  wholeNumberArgument,
  type LeaseCommandOptions,
} from './options.js';
import { openPools } from './service.js';
import { formatNote, note, oneLine, paintFor, printJson, type Format, type Paint } from './terminal.js';

export function define(command: Command, { signal }: Interruption): void {
  addPoolArgument(addReachOptions(addLeaseOptions(command, { record: recordAll() })))
    .description(
      'Serves an address on 127.0.0.1 at which any program gets browsers of a pool, by CDP or BiDi.',
    )
    .option('--port <port>', 'TCP port; 0 for any free port', wholeNumberArgument(0, 65_535), 9333)
    .option('--no-secret', 'an address without a random path, for programs that take only a port: see below')
    .option('--name <name>', 'with --share: name of the lease')
    .option('--share', 'one browser for all clients, from the first of them until the end, or --idle-timeout')
    .option('--max <n>', 'browsers to lease at once, of each pool', wholeNumberArgument(1))
    .addOption(
      timeout(
        '--keep <time>',
        'time for which a browser with a name waits for its next client: 30s, 5m',
        '60s',
      ),
    )
    .addOption(
      new Option(
        '--idle-timeout <time>',
        'disconnect a client without a command for this time: 30s, 5m; 0: never',
      )
        .argParser(timeOrNone)
        .default(3_600_000, '1h'),
    )
    .addOption(
      new Option(
        '--max-lifetime <time>',
        'the latest end to which a client can extend a lease (default: twice --lifetime)',
      ).argParser(time),
    )
    .option(
      '--keep-file <file>',
      'browsers with a name outlive a restart of the proxy; needs --lifetime: see below',
    )
    .option('--record-to <folder>', 'record each lease, and save the video in this folder')
    .option('--json', 'print JSON, one line per event')
    .addHelpText('after', HELP)
    .action(async (pool: string, options: ProxyCommandOptions) => proxy(pool, options, signal));
}

const HELP = `
Each connection leases a browser when it begins, and releases it when it ends. While no browser is
available, the connection waits; after --acquire-timeout it is refused with status 503. Addresses,
below the one that is printed:
  /              Chrome DevTools Protocol (ws), or the address of a debugging port (http)
  /session       WebDriver BiDi
  /playwright    Playwright's own protocol (ws), for clients of the same version in any language:
                 chromium.connect(); needs playwright-core 1.59 or newer in the current folder
  /NAME          the browser of this name, also as /playwright/NAME: a client that comes back within
                 --keep finds its browser as it was. A second client at the same time is
                 refused with status 409, unless it is an extension that the first one has
                 loaded in the browser, as Stagehand 4 does.
  /NAME/lease    GET: the session, age and remaining ms of its lease; POST {"extend": "10m"} (or
                 ms) moves the end that --lifetime sets, at most to --max-lifetime
  /NAME/handoff  POST {"message": "…"}: a person takes over (guide: pooled-browser skills handoff)
Everybody with the address can use the pool from this machine. Web pages never can. Programs that
take only a port, such as lighthouse --port, need --no-secret: then every user of this machine can,
and can open your files in a browser that runs here. With --share, the address is a debugging port,
as Selenium and chromedriver need it: goog:chromeOptions.debuggerAddress "127.0.0.1:9222".
BROWSER_POOL_PROXY_SECRET is the secret of the address instead of a random one: at least 16 letters,
digits, "-" and "_".
With --keep-file, the proxy leaves browsers with a name leased when it stops or is killed, and notes
them in the file, without URLs and tokens. The next proxy with this file finds each of them when a
client of its name comes within --keep, and releases the others. Browsers that wait for no
proxy end with the inactivity timeout of the service. The pool must outlive the proxy, too: not
local, but a service, or pooled-browser serve on this machine (pooled-browser skills proxy).
${ABOUT_TOKEN}

Examples:
  $ pooled-browser proxy agents
  $ pooled-browser proxy agents --max 4 --idle-timeout 5m --release-on-crash
  $ pooled-browser proxy agents --no-secret --share --port 9222
  $ pooled-browser proxy agents --keep-file agents.json --lifetime 2h --keep 5m
  $ pooled-browser proxy agents --json | jq -r 'select(.type == "released") | .replays[]'`;

interface ProxyCommandOptions extends LeaseCommandOptions {
  port: number;
  secret: boolean;
  share?: true;
  max?: number;
  /** In ms. */
  keep: number;
  /** In ms; 0: none. */
  idleTimeout: number;
  /** In ms. */
  maxLifetime?: number;
  keepFile?: string;
  /** Folder. */
  recordTo?: string;
  json?: true;
}

/** Serves a pool until a signal. */
async function proxy(poolList: string, options: ProxyCommandOptions, signal: AbortSignal): Promise<void> {
  const { port, secret, share, max, keep, keepFile, maxLifetime, idleTimeout } = options;
  const { recordTo, json } = options;
  if (recordTo !== undefined) await mkdir(recordTo, { recursive: true });
  await using pools = await openPools(poolList, options, max);
  const report = json ? JSON_REPORT : new TextReport();
  const log = createLeaseLog(options.acquireTimeout, report.note);
  const saving = new Set<Promise<void>>();
  const onClient = (event: ProxyEvent) => {
    if (event.type !== 'released' || recordTo === undefined) return report.print(event);
    const saved = saveVideos(pools, event, recordTo, report.note).then((files) => report.print(event, files));
    saving.add(saved);
    return void saved.then(() => saving.delete(saved));
  };
  const { serveProxy } = await import('../calls/serve-proxy.js');
  const server = await serveProxy(pools, {
    ...leaseSettings(options),
    // What this process records is there already.
    ...(recordTo !== undefined && { replays: 'record', recording: { folder: recordTo } }),
    port,
    secret,
    share,
    keep,
    keepFile,
    maxLifetime,
    idleTimeout,
    onClient,
    onEvent: (event: RunEvent) => {
      // The progress line shows how many clients wait, and the line of a refused host whose it is.
      if (event.type !== 'request-refused' && (event.type !== 'waiting' || event.error)) log(event);
    },
  });
  report.begin(poolList, server);
  if (!signal.aborted) await once(signal, 'abort');
  process.stderr.write('Stopping.\n');
  await server.close();
  await Promise.all(saving);
  report.end();
}

type Released = Extract<ProxyEvent, { type: 'released' }>;

/** Saves the videos of a lease, and returns the paths. Never rejects. */
async function saveVideos(
  pools: readonly BrowserPool[],
  { sessionId, summary }: Released,
  folder: string,
  print: (text: string) => void,
): Promise<string[]> {
  // Pools of several services may have one name.
  const owners = pools.filter(({ idOrName }) => idOrName === summary.pool);
  const save = async (id: string, [pool, ...others] = owners): Promise<string[]> => {
    if (!pool) return [];
    const path = join(folder, `${randomUUID()}.video`);
    try {
      const { type } = await pool.downloadReplay(sessionId, id, path);
      const ending = /^video\/(\w+)/.exec(type ?? '')?.[1] ?? 'mp4';
      // An id from outside is no path, and names no file that exists.
      const name = `${id.replaceAll(/[^\w-]/g, '_')}.${ending}`;
      return [(await placeFile(path, folder, { name, mustStay: false })).path];
    } catch (error) {
      await rm(path, { force: true });
      if (others.length > 0) return save(id, others);
      print(`The recording ${id} was not saved: ${oneLine((error as Error).message)}`);
      return [];
    }
  };
  const files: string[] = [];
  // One after the other: the service chooses how many there are.
  for (const { replay_id: id, recorded_by: by, replay_view_url: link } of summary.replays) {
    if (by === 'client') files.push(dirname(fileURLToPath(link!)));
    else if (id !== undefined) files.push(...(await save(id)));
  }
  return files;
}

/** Prints what happens. */
interface Report {
  /** A message that is no event. */
  readonly note: (text: string) => void;
  begin(pool: string, server: PoolProxy): void;
  /** @param files The saved videos of a lease. */
  readonly print: (event: ProxyEvent, files?: readonly string[]) => void;
  end(): void;
}

const JSON_REPORT: Report = {
  note,
  begin: (pool, { url, playwrightUrl: playwright }) =>
    void printJson({ type: 'serving', pool, url, ...addressesOf(url), ...(playwright && { playwright }) }),
  print(event, files) {
    if (event.type !== 'released') return void printJson(event);
    const { summary, ...facts } = event;
    const { released, replays, replayStatus } = summary;
    printJson({ ...facts, released, replays, replayStatus, ...(files && { files }) });
  },
  end: () => {},
};

/** A line for each lease at its beginning and at its end, and at a terminal a line of progress below. */
class TextReport implements Report {
  readonly #paint = paintFor(process.stdout);
  readonly #progress = process.stdout.isTTY ? new LiveLines(process.stdout) : undefined;
  #served = 0;

  readonly note = (text: string): void => (this.#progress ? this.#write(formatNote(text)) : note(text));

  begin(pool: string, server: PoolProxy): void {
    this.#write(`${instructions(pool, server, this.#paint)}\n\n`);
    this.#progress?.show(() => {
      const { connected, waiting, leased } = server.counts;
      const facts = [
        `${leased} leased`,
        `${connected} connected`,
        `${waiting} waiting`,
        `${this.#served} released`,
      ];
      return [[[facts.join(', '), 'dim']]];
    });
  }

  readonly print = (event: ProxyEvent, files: readonly string[] = []): void => {
    if (event.type === 'released') this.#served++;
    const described = describeEvent(event, files);
    const time = this.#paint('dim', new Date().toTimeString().slice(0, 8));
    if (described) this.#write(`${time}  ${this.#paint(...described)}\n`);
    // Draws the progress again.
    else this.#progress?.print('');
  };

  end(): void {
    this.#progress?.end();
  }

  #write(text: string): void {
    if (this.#progress) this.#progress.print(text);
    else process.stdout.write(text);
  }
}

function addressesOf(url: string): { cdp: string; bidi: string } {
  const cdp = url.replace('http', 'ws');
  return { cdp, bidi: `${cdp}/session` };
}

function instructions(pool: string, { url, playwrightUrl }: PoolProxy, paint: Paint): string {
  const { cdp, bidi } = addressesOf(url);
  return [
    paint('bold', `Serving pool ${pool} at ${url}`),
    '',
    `  Playwright       chromium.connectOverCDP('${url}')`,
    ...(playwrightUrl === undefined ? [] : [`                   chromium.connect('${playwrightUrl}')`]),
    `  Puppeteer        puppeteer.connect({ browserWSEndpoint: '${cdp}' })`,
    `  WebDriver BiDi   ${bidi}`,
    `  MCP              npx @playwright/mcp --cdp-endpoint ${url}`,
    '',
    'Each connection leases a browser, and releases it when it ends. To keep a browser between connections,',
    `give it a name: ${url}/NAME`,
    '',
    'Press Ctrl-C to stop.',
  ].join('\n');
}

/** What became of the browser that an earlier proxy has leased. */
const KEPT = { found: 'found again', gone: 'in the place of one that is gone' } as const;

/** Describes an event as one line; `undefined` for events that only programs need. */
function describeEvent(
  event: ProxyEvent,
  files: readonly string[],
): [format: Format, line: string] | undefined {
  const name = event.name ?? '';
  const line = (what: string, ...facts: readonly (string | undefined)[]) =>
    [what.padEnd('released'.length), ...facts].filter(Boolean).join('  ');
  switch (event.type) {
    case 'leased': {
      const view = event.liveViewUrl && `live view ${event.liveViewUrl}`;
      const kept = event.kept && KEPT[event.kept];
      return ['green', line('leased', event.sessionId, name, `after ${duration(event.waited)}`, kept, view)];
    }
    case 'released': {
      const { released, replays } = event.summary;
      // With a keep file, the next proxy finds the browser.
      const isKept = released === 'left';
      const ends = [
        `after ${duration(event.elapsed)}`,
        isKept ? 'for the next proxy' : released,
        ...describeReplays({ replays }),
        ...files,
      ];
      return [
        released === 'failed' || released === 'unknown' ? 'red' : 'cyan',
        line(isKept ? 'kept' : 'released', event.sessionId, name, ...ends),
      ];
    }
    case 'request-refused':
      return ['yellow', line('blocked', event.sessionId, name, `${event.host}, which is not allowed`)];
    case 'disconnected':
      return event.isIdle ? ['yellow', line('idle', event.sessionId, name)] : undefined;
    case 'refused':
      return ['red', line('refused', name, String(event.status), event.reason)];
    default:
      return undefined;
  }
}
