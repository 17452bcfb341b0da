import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { BrowserPool } from '../../src/index.js';
import { LEASE_TAG } from '../../src/services.js';
import { contractOf, ContractServer } from '../support/contract-server.js';
import { FakeService, TOKEN } from '../support/fake-service.js';
import type { Ended } from '../support/program.js';
import { expectRefusal, runHere, typeHere } from './support.js';

const OLD = '2020-01-01T00:00:00.000Z';

/** Sessions of the given API: two of this library, and one of another program. */
const SESSIONS = [
  session('old', { [LEASE_TAG]: 'lease-1', 'pooled-browser-owner': `machine-1/42/${OLD}/60000` }),
  session('new', {
    [LEASE_TAG]: 'lease-2',
    'pooled-browser-owner': `machine-2/7/${new Date().toISOString()}/7200000`,
  }),
  session('unknown-age', { [LEASE_TAG]: 'lease-3' }),
  session('of-others', { team: 'a' }),
  { session_id: 'without-tags', created_at: OLD },
];

function session(session_id: string, tags: object) {
  return {
    session_id,
    tags,
    created_at: OLD,
    name: `name-of-${session_id}`,
    pool: { id: 'pool-1', name: 'scrapers' },
  };
}

async function startService(): Promise<FakeService> {
  const service = await FakeService.start();
  service.script('search', (response) => void response.end(JSON.stringify(SESSIONS)));
  service.script('session', (response, { path }) => {
    const id = path.split('/').at(-1);
    response.end(JSON.stringify(SESSIONS.find(({ session_id }) => session_id === id)));
  });
  return service;
}

async function run(...args: string[]): Promise<Ended & { released: unknown[] }> {
  await using service = await startService();
  const ended = await runHere(['leases', ...args], service.options);
  return { ...ended, released: service.released };
}

const matching = (text: RegExp) => expect.stringMatching(text) as string;
const cells = (stdout: string) =>
  stdout
    .trim()
    .split('\n')
    .map((line) => line.split(/ {2,}/));

it('lists only sessions with the tag of this library, with their owner, age and end', async () => {
  const { code, stdout, stderr, released } = await run();
  expect({ code, stderr, released }).toEqual({ code: 0, stderr: '', released: [] });
  expect(cells(stdout)).toEqual([
    ['session', 'name', 'pool', 'age', 'end', 'host and process'],
    ['old', 'name-of-old', 'scrapers', matching(/^\d+h \d+m$/), matching(/^\d+h \d+m ago$/), 'machine-1 42'],
    ['new', 'name-of-new', 'scrapers', matching(/^(\d+m )?\d+s$/), matching(/^in 1h 5\dm$/), 'machine-2 7'],
    ['unknown-age', 'name-of-unknown-age', 'scrapers', '-', '-', '-'],
  ]);
  const json = JSON.parse((await run('scrapers', '--json')).stdout) as object[];
  expect(json).toMatchObject([{ session: 'old', owner: { host: 'machine-1', pid: 42 } }, {}, {}]);
  const [old, , unknown] = json as { age: number; remaining: number }[];
  expect(old!.age + old!.remaining).toBe(60_000);
  expect(unknown).not.toHaveProperty('remaining');
  expect(JSON.parse((await run('pool-1', '--json')).stdout)).toHaveLength(3);
  expect((await run('another-pool')).stderr).toContain('There are no active leases of this library.');
});

it('ends one lease, or those that are older, and never a session without the tag', async () => {
  const one = await run('--release', 'new', '--yes');
  expect(one).toMatchObject({ code: 0, stdout: 'new  ended\n', released: ['new'] });
  const old = await run('--older-than', '2h', '--yes', '--json');
  expect(JSON.parse(old.stdout)).toEqual([{ session: 'old', result: 'released' }]);
  expect(old.released).toEqual(['old']);
  expect(old.stderr).toContain('The age of 1 lease is unknown');
  const others = await run('--release', 'of-others', '--release', 'old', '--yes');
  expect(others).toMatchObject({ code: 1, stdout: '', released: [] });
  expect(others.stderr).toContain('Session of-others is no active lease of this library: nothing was ended.');
});

it('does not end a session that belongs to another lease meanwhile', async () => {
  await using service = await startService();
  service.script('session', { status: 200, json: session('old', { [LEASE_TAG]: 'lease-9' }) });
  const { code, stdout } = await runHere(['leases', '--release', 'old', '--yes'], service.options);
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'old  ended\n' });
  expect(service.released).toEqual([]);
});

it.each([
  ['shorter pages than requested', 130, 50, ''],
  [
    'no end',
    1_000_000,
    100,
    'pooled-browser: The list of sessions does not end: only the first 10000 sessions are used.\n',
  ],
])('reads a list with %s', async (_what, count, longest, message) => {
  await using service = await FakeService.start();
  service.script('search', (response, { path }) => {
    const { searchParams } = new URL(path, service.baseUrl);
    const [limit, offset] = [Number(searchParams.get('limit')), Number(searchParams.get('offset'))];
    const length = Math.min(limit, longest, count - offset);
    const page = Array.from({ length }, (_, at) =>
      session(`session-${offset + at}`, { [LEASE_TAG]: 'lease' }),
    );
    response.end(JSON.stringify(page));
  });
  const { code, stdout, stderr } = await runHere(['leases', '--json'], service.options);
  expect({ code, stderr, listed: (JSON.parse(stdout) as unknown[]).length }).toEqual({
    code: 0,
    stderr: message,
    listed: Math.min(count, 10_000),
  });
});

it('does not guess the pool of a session', async () => {
  await using service = await startService();
  const { pool: _pool, ...poolless } = session('old', { [LEASE_TAG]: 'lease-1' });
  service.script('search', { status: 200, json: [poolless] });
  const args = ['--release', 'old', '--yes'];
  const ended = await runHere(['leases', ...args], service.options);
  expectRefusal(ended, 'The service does not say which pool session old belongs to.');
  await runHere(['leases', 'mine', ...args], service.options);
  expect(service.of('release').map(({ path }) => path)).toEqual(['/browser_pools/mine/release']);
});

it('requires --yes without a terminal', async () => {
  const ended = await run('--older-than', '2h');
  expectRefusal({ ...ended, stdout: '' }, 'To answer yes, pass --yes.');
  expect(ended.released).toEqual([]);
});

it.each([
  ['n\n', []],
  ['y\n', ['old']],
])('asks first at a terminal: %j', async (typed, expected) => {
  typeHere(typed);
  const { stderr, released } = await run('--older-than', '2h');
  expect(stderr).toContain('End this lease? A program that still uses one loses its browser. [y/N] ');
  expect(released).toEqual(expected);
});

describe.each(['browserbase', 'browser-use'])('with --service %s', (name) => {
  let server: ContractServer;
  let pool: BrowserPool<object>;
  beforeAll(async () => {
    server = await ContractServer.start(contractOf(name));
    pool = new BrowserPool<object>('any', {
      service: contractOf(name).service,
      baseUrl: server.baseUrl,
      token: TOKEN,
    });
  });
  afterAll(async () => {
    await pool.close();
    await server[Symbol.asyncDispose]();
  });

  it('lists and ends the leases', async () => {
    const { id } = (await pool.acquire({ name: 'a-name' })) as { id: string };
    vi.stubEnv('BROWSER_POOL_SERVICE', name);
    const at = { baseUrl: server.baseUrl, token: TOKEN };
    const listed = await runHere(['leases', '--json'], at);
    expect(JSON.parse(listed.stdout)).toMatchObject([{ session: id, name: 'a-name' }]);
    expect(listed.stdout + listed.stderr).not.toContain('canary');
    const ended = await runHere(['leases', '--release', id, '--yes'], at);
    expect(ended).toMatchObject({ code: 0, stdout: `${id}  ended\n` });
    expect(server.released).toEqual([id]);
  });
});

it('reads the numbered pages of a service to their end', async () => {
  const contract = contractOf('browser-use');
  await using server = await ContractServer.start(contract);
  const mine = Array.from({ length: 250 }, (_, at) => ({
    id: `session-${at}`,
    body: { metadata: { [LEASE_TAG]: `of-${at}` } },
    createdAt: new Date(),
  }));
  server.sessions.push(...mine);
  vi.stubEnv('BROWSER_POOL_SERVICE', 'browser-use');
  const listed = await runHere(['leases', '--json'], { baseUrl: server.baseUrl, token: TOKEN });
  expect(JSON.parse(listed.stdout)).toHaveLength(mine.length);
  expect(server.requests).toHaveLength(4);
});

it('says which service has no such list', async () => {
  vi.stubEnv('STEEL_API_KEY', 'a-key');
  const ended = await runHere(['leases', '--service', 'steel']);
  expectRefusal(ended, 'The service steel has no list of sessions that shows which are of this library.');
});
