import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { look, useLocalPool } from '../support/local.js';
import { startProgram, variablesOf, type Program } from '../support/program.js';
import { hasRedis, TestRedis } from '../support/redis-server.js';
import { runHere } from './support.js';

const used = useLocalPool({
  pools: ['scrapers', 'agents'].map((name) => ({ name, size: 2 })),
});

/** The folder in which the examples run, with the files that they name. */
const folder = mkdtempSync(join(tmpdir(), 'help-'));
const FILES = {
  'scrape.py': 'import os\nprint(os.environ["BROWSER_POOL_CDP_WS_URL"])\n',
  'title.mjs': `export default async ({ input, page }) => {
    await page.goto(input);
    return { title: await page.title() };
  };`,
  'urls.txt': ['One', 'Two'].map((title) => `data:text/html,<title>${title}</title>\n`).join(''),
};
const HELLO = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
};

interface Example {
  /** What the example prints. */
  readonly prints: RegExp;
  /** It runs until Ctrl-C. */
  readonly stops?: true;
  /** What it reads. */
  readonly stdin?: string;
  /** What this machine needs instead of a part of the example. */
  readonly instead?: (line: string) => string | Promise<string>;
}

const EXAMPLES: Readonly<Record<string, Example>> = {
  demo: { prints: /The replays stay after the demo/ },
  serve: { prints: /Serving default \(2 browsers\) at/, stops: true },
  exec: { prints: /^ws:/ },
  // Another program of this machine may use its port.
  proxy: { prints: /Serving pool agents at/, stops: true, instead: (line) => `${line} --port 0` },
  mcp: { prints: /"serverInfo"/, stdin: `${JSON.stringify(HELLO)}\n` },
  map: { prints: /Finished: 2/ },
  work: { prints: /Working for the queue titles/, stops: true },
  acquire: { prints: /^cdp +ws:/m, stops: true },
  flush: { prints: /"flushed":true/ },
  leases: { prints: /no active leases/ },
  replays: { prints: /has no recordings/, instead: withSession },
  doctor: { prints: /the service answers/ },
  'install-browser': { prints: /^Browser: \// },
  skills: { prints: /^overview/ },
  completion: { prints: /^$/ },
};

beforeAll(() => {
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, name), text);
  mkdirSync(join(folder, 'bin'));
  symlinkSync(resolve('dist/cli/main.js'), join(folder, 'bin/pooled-browser'));
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
});

/** The id of a browser that was leased, in place of the one of the example. */
async function withSession(line: string): Promise<string> {
  const id = await look(used.pool, async ({ session_id }) => session_id);
  return line.replace(/[\da-f-]{36}/, id);
}

async function exampleOf(command: string): Promise<string> {
  const { stdout } = await runHere([command, '--help']);
  const [, line] = /^Examples?:\n {2}\$ (pooled-browser .*)$/m.exec(stdout) ?? [];
  return line!;
}

function start(line: string, redis: string | undefined, isFed: boolean): Program {
  const own = {
    PATH: `${join(folder, 'bin')}:${process.env['PATH']}`,
    HOME: folder,
    REDIS_URL: redis,
    BROWSER_POOL_LOCAL_RECORDINGS: undefined,
  };
  const environment = { ...variablesOf(used.local), ...own };
  const options = { command: 'sh', cwd: folder, stdin: isFed ? 'pipe' : 'ignore' } as const;
  return startProgram(['-c', `exec ${line}`], environment, options);
}

it('has a test of the example of each command', async () => {
  const { stdout } = await runHere(['--help']);
  const listed = [...stdout.matchAll(/^ {2}([a-z][a-z-]+)(?: \[command\])? {2}/gm)].map(([, name]) => name);
  expect(listed.filter((name) => name !== 'help')).toEqual(Object.keys(EXAMPLES));
});

it.each(Object.entries(EXAMPLES).filter(([name]) => name !== 'work' || hasRedis))(
  'the first example of %s --help does what it says',
  async (command, { prints, stops, stdin, instead = (line) => line }) => {
    await using redis = command === 'work' ? await TestRedis.start() : undefined;
    const program = start(await instead(await exampleOf(command)), redis?.url, stdin !== undefined);
    if (stdin !== undefined) program.child.stdin!.write(stdin);
    if (stops || stdin !== undefined) await program.prints(prints);
    if (stdin !== undefined) program.child.stdin!.end();
    const { code, stdout, stderr } = stops ? await program.end('SIGINT') : await program.ended;
    expect(`${stdout}${stderr}`).toMatch(prints);
    expect(code, stderr).toBe(0);
    expect(used.local.stats().leased).toBe(0);
  },
);

it('leaves what the examples of map and completion write', () => {
  const results = readFileSync(join(folder, 'titles.jsonl'), 'utf8').trimEnd().split('\n');
  expect(results.map((line) => (JSON.parse(line) as { value: unknown }).value)).toEqual(
    expect.arrayContaining([{ title: 'One' }, { title: 'Two' }]),
  );
  expect(readFileSync(join(folder, '.bashrc'), 'utf8')).toContain('bash completion for pooled-browser');
});
