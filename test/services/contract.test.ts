import type { IncomingMessage, ServerResponse } from 'node:http';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  BrowserPool,
  leaseBrowser,
  mapPooledBrowsers,
  runOf,
  withPooledBrowser,
  type BrowserPoolOptions,
  type BrowserService,
} from '../../src/index.js';
import type { ConnectRequest } from '../../src/drivers/connector.js';
import { coreOf } from '../../src/pool/pool-core.js';
import { serviceError } from '../../src/net/response.js';
import { leaseSession } from '../../src/calls/lease-browser.js';
import { hideParameters } from '../../src/shared/redact.js';
import {
  anchor,
  browserbase,
  browserUse,
  cloudflare,
  hyperbrowser,
  LEASE_TAG,
  MARK_TAG,
  steel,
} from '../../src/services.js';
import { CONTRACTS, contractOf, ContractServer, answerWith } from '../support/contract-server.js';
import { TOKEN } from '../support/fake-service.js';
import { plainConnector } from '../support/plain-connector.js';
import { expectNoSecrets } from '../support/collected.js';
import { Site } from '../support/site.js';
import { until } from '../support/played-browser.js';
import { rejection } from '../pool/support.js';

interface Event {
  type: string;
}

/** A server with the API of a service, and a pool of it. */
async function open(name: string, options: BrowserPoolOptions<object> = {}) {
  const contract = contractOf(name);
  const server = await ContractServer.start(contract);
  const pool = new BrowserPool<object>('mine', {
    service: contract.service,
    baseUrl: server.baseUrl,
    token: TOKEN,
    ...options,
  });
  const events: Event[] = [];
  const onEvent = (event: Event) => void events.push(event);
  return {
    server,
    pool,
    events,
    types: () => events.map(({ type }) => type),
    /** Leases without a connection; a refusal is followed by the next request at once. */
    lease: (more: object = {}) =>
      leaseSession(pool, { retry: { minTimeout: 1, maxTimeout: 1 }, onEvent, ...more }),
    run: (more: object = {}) =>
      withPooledBrowser(pool, ({ session }) => session, {
        connector: plainConnector,
        retry: { minTimeout: 1, maxTimeout: 1 },
        onEvent,
        ...more,
      }),
    [Symbol.asyncDispose]: async () => {
      await pool.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

const LEASE = { pool: 'p', id: 'one', keepAlive: false, record: false };
const NAMES = CONTRACTS.map(({ name }) => name);

describe.each(NAMES)('%s', (name) => {
  it('repeats requests that the service refuses with 429, and never holds two sessions on one slot', async () => {
    await using used = await open(name);
    used.server.slots = 1;
    const runs = await Promise.all([1, 2, 3, 4].map(() => used.run()));
    expect(runs.map(({ released }) => released)).toEqual(Array(4).fill('destroyed'));
    expect([used.server.most, used.server.sessions.length, used.server.active.length]).toEqual([1, 4, 0]);
  });

  it('releases the session once, and shows no secret in the run and its events', async () => {
    await using used = await open(name);
    const run = await used.run({ name: 'a-name', tags: { team: 'a' } });
    const [session] = used.server.sessions;
    expect(run.released).toBe('destroyed');
    expect(run.cleanupErrors).toEqual([]);
    if (!contractOf(name).endsWithConnection) expect(used.server.released).toEqual([session!.id]);
    for (const value of [run, used.events, used.pool]) expectNoSecrets(value);
    // What the callback returned is the session itself, whose fields are there by their names.
    expect(Object.getOwnPropertyNames(run.value)).toEqual(Object.getOwnPropertyNames(run.session));
  });

  it('fails at once with an expired key, as does the request of doctor, which only reads', async () => {
    await using used = await open(name);
    const { client, service } = coreOf(used.pool);
    const probe = () => client.send(service.probe!, { facts: {} });
    expect((await probe()).status).toBe(200);
    used.server.isExpired = true;
    expect((await probe()).status).toBe(401);
    const error = await rejection(used.lease());
    expect(error).toMatchObject({ name: 'PoolServiceError', status: 401 });
    expectNoSecrets(error);
    expect(used.server.requests).toHaveLength(3);
    expect(used.server.sessions).toEqual([]);
  });

  it('reports a release with a wrong id, and what happened to a session that ended by itself', async () => {
    await using used = await open(name);
    const status = contractOf(name).unknownId ?? 404;
    expect(await rejection(used.pool.release('no-such-session'))).toMatchObject({ status });
    const lease = await used.lease({ replays: 'off' });
    used.server.end(used.server.sessions[0]!.id);
    const { released, cleanupErrors } = await lease.end({ status: 'ok' });
    // The status of Anchor does not say whether the session has ended or the key has expired.
    expect(released).toBe(name === 'anchor' ? 'unknown' : 'destroyed');
    const message = expect.stringContaining('401 http_401: No such session. ') as string;
    expect(cleanupErrors).toEqual(name === 'anchor' ? [expect.objectContaining({ message })] : []);
  });

  it('finds and releases the session of a lost response, or reports it', async () => {
    await using used = await open(name);
    used.server.losesNext = true;
    const lease = await used.lease();
    await lease.end({ status: 'ok' });
    const [lost] = used.server.sessions;
    if (contractOf(name).service.find) {
      await until(() => used.server.released.includes(lost!.id));
      expect(used.types()).not.toContain('outcome-unknown');
    } else {
      expect(used.types()).toContain('outcome-unknown');
      expect(used.server.active).toEqual([lost]);
    }
  });
});

it('browser-use: the session of a lost response is found by its tag, whatever page of the list it is on', async () => {
  await using used = await open('browser-use');
  const others = Array.from({ length: 250 }, (_, at) => ({
    id: `other-${at}`,
    body: { metadata: { [LEASE_TAG]: `of-${at}` } },
    createdAt: new Date(),
  }));
  used.server.sessions.push(...others);
  used.server.slots = 300;
  used.server.losesNext = true;
  await (await used.lease()).end({ status: 'ok' });
  const lost = used.server.sessions[others.length]!;
  await until(() => used.server.released.includes(lost.id));
  expect(used.server.active).toEqual(others);
});

describe('the recordings of a lease', () => {
  it.each<[string, object]>([
    [
      'browserbase',
      {
        replay_id: 'page-1',
        replay_view_url: expect.stringContaining('browserbase.com/sessions/') as string,
        access: 'login',
      },
    ],
    [
      'steel',
      {
        replay_view_url: expect.stringContaining('https://app.steel.dev/sessions/') as string,
        access: 'login',
      },
    ],
    [
      'hyperbrowser',
      {
        replay_view_url: expect.stringContaining('https://app.hyperbrowser.ai/') as string,
        access: 'login',
      },
    ],
    [
      'anchor',
      {
        replay_id: 'recording-1',
        replay_view_url: 'https://api.anchorbrowser.io/recording.mp4',
        access: 'public',
      },
    ],
    ['browser-use', { replay_view_url: 'https://files.example.com/video.mp4', access: 'public' }],
  ])('are listed, and awaited with replays: record: %s', async (name, replay) => {
    await using used = await open(name);
    const run = await used.run({ replays: 'record' });
    expect(run).toMatchObject({ replayStatus: 'ready', cleanupErrors: [] });
    expect(run.replays).toMatchObject([{ ...replay, finished_at: expect.any(String) as string }]);
  });

  it.each(['browser-use', 'hyperbrowser'])('are none if %s does not record', async (name) => {
    const service = {
      'browser-use': browserUse(),
      hyperbrowser: hyperbrowser({ enableWebRecording: false }),
    }[name];
    await using used = await open(name, { service: service! });
    expect(await used.run()).toMatchObject({ replays: [], replayStatus: 'none', cleanupErrors: [] });
  });
});

describe('the recording of a service, with keepOnly', () => {
  const FAILURES = { replays: 'record', recording: { by: 'service', keepOnly: 'failures' } } as const;
  const DELETE = /^DELETE .*\/recordings\/recording-1$/;
  /** A connector whose tasks have pages. */
  const withPages = {
    ...plainConnector,
    connect: async (request: ConnectRequest) => ({
      ...(await plainConnector.connect(request)),
      openWorkspace: async () => ({ handles: {}, reset: async () => true, close: async () => {} }),
    }),
  };
  const deletesOf = ({ requests }: ContractServer) => requests.filter((request) => DELETE.test(request));

  it('is deleted after the release of a lease in which nothing failed', async () => {
    await using used = await open('anchor');
    const run = await used.run(FAILURES);
    expect(run).toMatchObject({ replays: [], replayStatus: 'none', cleanupErrors: [] });
    expect(used.events.findLast(({ type }) => type === 'replays')).toMatchObject({ status: 'none' });
    const [session] = used.server.sessions;
    expect(session!.body).toMatchObject({ session: { recording: { active: true } } });
    const release = used.server.requests.indexOf(`DELETE /v1/sessions/${session!.id}`);
    expect(used.server.requests.findIndex((one) => DELETE.test(one))).toBeGreaterThan(release);
    expect(await used.pool.replays(session!.id)).toEqual([]);
  });

  it('stays if the callback or one of the tasks failed, and while the browser stays leased', async () => {
    await using used = await open('anchor');
    const fails = () => Promise.reject(new Error('seeded'));
    const options = { ...FAILURES, connector: plainConnector };
    const error: unknown = await rejection(withPooledBrowser(used.pool, fails, options));
    expect(runOf(error)).toMatchObject({ replays: [{ replay_id: 'recording-1' }], replayStatus: 'ready' });
    const odd = async ({ input }: { input: number }) => {
      if (input % 2 === 0) throw new Error('seeded');
    };
    const outcomes = mapPooledBrowsers(used.pool, [1, 2, 3], odd, {
      ...FAILURES,
      concurrency: 1,
      isolation: 'none',
      connector: withPages,
    });
    const statuses: string[] = [];
    for await (const { status } of outcomes) statuses.push(status);
    expect(statuses).toContain('rejected');
    await used.run({ ...FAILURES, release: 'leave' });
    expect(used.server.sessions).toHaveLength(3);
    expect(deletesOf(used.server)).toEqual([]);
  });

  it('stays in the result with the reason in cleanupErrors if the service refuses to delete it', async () => {
    await using used = await open('anchor');
    used.server.faults.push({ route: DELETE, answer: answerWith(403, {}, { message: 'no' }) });
    const run = await used.run(FAILURES);
    expect(run).toMatchObject({ replays: [{ replay_id: 'recording-1' }], replayStatus: 'ready' });
    expect(run).toMatchObject({ cleanupErrors: [{ name: 'PoolServiceError', status: 403 }] });
    expectNoSecrets(run, ...used.events);
  });

  it('counts as deleted if the first request was lost, and the next one finds nothing', async () => {
    await using used = await open('anchor');
    used.server.faults.push({ route: DELETE, answer: (response) => void response.socket!.destroy() });
    used.server.faults.push({ route: DELETE, answer: answerWith(404) });
    expect(await used.run(FAILURES)).toMatchObject({ replays: [], replayStatus: 'none', cleanupErrors: [] });
    expect(deletesOf(used.server)).toHaveLength(2);
  });

  it('stays at a service whose API deletes none', async () => {
    await using used = await open('browser-use');
    const run = await used.run(FAILURES);
    expect(run).toMatchObject({ replays: [{}], replayStatus: 'ready', cleanupErrors: [] });
    const error = await rejection(used.pool.deleteReplay('one', 'two'));
    expect(error).toMatchObject({ name: 'InvalidOptionError', option: 'service' });
    expect(error.message).toContain('has no request that deletes a recording');
  });
});

describe('the video of a recording', () => {
  /** The server of the files: the requests that it received, and how it answers them. */
  async function startFiles(answer: (response: ServerResponse) => void = sendVideo) {
    const requests: IncomingMessage[] = [];
    const site = await Site.open((request, response) => {
      requests.push(request);
      answer(response);
    });
    return Object.assign(site, { requests });
  }
  const sendVideo = (response: ServerResponse) =>
    void response.writeHead(200, { 'content-type': 'video/mp4', 'content-length': 5 }).end('video');

  /** A recorded lease that has ended, and its only recording. */
  async function recordWith(used: Awaited<ReturnType<typeof open>>) {
    const { replays } = await used.run({ replays: 'record' });
    return { sessionId: used.server.sessions[0]!.id, replayId: replays[0]!.replay_id! };
  }

  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'video-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it.each<[string, string[]]>([
    ['browserbase', ['POST /recording/downloads', 'GET /recording/downloads', 'GET /recording/downloads']],
    ['anchor', ['GET /recordings', 'GET /recordings/primary/fetch']],
    ['hyperbrowser', ['GET /video-recording-url', 'GET /video-recording-url']],
    ['browser-use', ['GET ']],
  ])('of %s is loaded from the address that the service names, without the key', async (name, expected) => {
    await using used = await open(name);
    await using files = await startFiles();
    used.server.videoUrl = `${files.url}/video.mp4?signature=canary-signature`;
    const { sessionId, replayId } = await recordWith(used);
    const before = used.server.requests.length;
    const path = join(folder, 'video.mp4');
    const result = await used.pool.downloadReplay(sessionId, replayId, path);
    expect(result).toEqual({ path, bytes: 5, type: 'video/mp4' });
    expect(await readFile(path, 'utf8')).toBe('video');
    const sent = used.server.requests
      .slice(before)
      .map((request) => request.replace(/ .*?(?=\/rec|\/vid|$)/, ' '));
    expect(sent).toEqual(expected);
    expect(files.requests.map(({ url }) => url)).toEqual(['/video.mp4?signature=canary-signature']);
    expect(JSON.stringify(files.requests[0]!.headers)).not.toContain(TOKEN);
  });

  it.each<[string, (response: ServerResponse) => void, string]>([
    ['a refusal', answerWith(403, {}, 'expired'), 'is not a video'],
    ['a page', answerWith(200, { 'content-type': 'text/html' }), 'has the content type text/html'],
    ['a redirect', answerWith(302, { location: 'http://127.0.0.1:2/' }), 'is not a video'],
    ['no answer', (response) => response.destroy(), 'The video could not be loaded from 127.0.0.1:'],
    [
      'a part of the video',
      (response) => {
        response.writeHead(200, { 'content-type': 'video/mp4', 'content-length': 50 }).write('vid');
        setTimeout(() => response.destroy(), 20);
      },
      'The video could not be loaded from 127.0.0.1:',
    ],
  ])('is an error, and no file, if the other server sends %s', async (_what, answer, message) => {
    await using used = await open('browser-use');
    await using files = await startFiles(answer);
    used.server.videoUrl = `${files.url}/?signature=canary-signature`;
    const { sessionId, replayId } = await recordWith(used);
    const path = join(folder, 'video.mp4');
    const error = await rejection(used.pool.downloadReplay(sessionId, replayId, path));
    expect(error.message).toContain(message);
    expectNoSecrets(error);
    expect(await readdir(folder)).toEqual([]);
  });

  it.each([
    ['http://files.example.com/video', 'is not encrypted (http) and leaves this machine'],
    ['file:///etc/passwd', 'is not an http URL'],
    ['https://ada:canary-password@files.example.com/', 'contains a user name or a password'],
    ['nowhere', 'is not a URL'],
  ])('is not loaded from %s', async (address, fault) => {
    await using used = await open('browser-use');
    used.server.videoUrl = address;
    const { sessionId, replayId } = await recordWith(used);
    const path = join(folder, 'video.mp4');
    const error = await rejection(used.pool.downloadReplay(sessionId, replayId, path));
    expect(error).toMatchObject({ name: 'PoolResponseError' });
    expect(error.message).toContain(fault);
    expectNoSecrets(error);
  });

  it.each<[string, string]>([
    ['hyperbrowser', 'has no video: the session was created without enableVideoWebRecording'],
    ['browser-use', 'has no video'],
  ])('does not exist if %s did not record one', async (name, why) => {
    await using used = await open(name);
    await used.run();
    const [{ id } = { id: '' }] = used.server.sessions;
    const error = await rejection(used.pool.downloadReplay(id, id, join(folder, 'video.mp4')));
    expect(error.message).toContain(why);
  });
});

describe('what the request that creates a session contains', () => {
  it.each<[string, BrowserService, object]>([
    [
      'browserbase',
      browserbase({ projectId: 'p', browserSettings: { blockAds: true }, userMetadata: { own: '1' } }),
      {
        projectId: 'p',
        browserSettings: { blockAds: true, recordSession: true },
        userMetadata: { own: '1', team: 'a', name: 'a-name' },
      },
    ],
    ['steel', steel({ timeout: 60_000 }), { timeout: 60_000 }],
    [
      'hyperbrowser',
      hyperbrowser({ useStealth: true }),
      { useStealth: true, enableWebRecording: true, enableVideoWebRecording: true },
    ],
    [
      'anchor',
      anchor({
        session: {
          tags: ['own'],
          timeout: { idle_timeout: 1 },
          initial_url: 'https://own.example.com/',
        },
        browser: { headless: { active: true } },
      }),
      {
        browser: { headless: { active: true } },
        // The lease comes before the options.
        session: {
          initial_url: 'https://example.com/',
          timeout: { idle_timeout: 1 },
          tags: expect.arrayContaining(['own', 'team:a', 'name:a-name']) as string[],
        },
      },
    ],
    [
      'browser-use',
      browserUse({ proxyCountryCode: null, metadata: { own: '1' } }),
      { proxyCountryCode: null, enableRecording: true, metadata: { own: '1', team: 'a', name: 'a-name' } },
    ],
  ])('the options of %s, and the lease', (name, service, expected) => {
    const what = { name: 'a-name', tags: { team: 'a' }, startUrl: 'https://example.com/', record: true };
    const { body } = service.acquire({ ...LEASE, ...what })!;
    expect(body).toMatchObject(expected);
    expect(JSON.stringify(body).includes(LEASE_TAG)).toBe(name !== 'steel' && name !== 'hyperbrowser');
  });

  it.each<[string, number, string, BrowserService, string[]]>([
    ['browser-use', 7, 'metadata', browserUse({ metadata: { own: '1' } }), [LEASE_TAG, MARK_TAG]],
    ['browser-use', 8, 'metadata', browserUse({ metadata: { own: '1' } }), [LEASE_TAG]],
    ['browser-use', 9, 'metadata', browserUse({ metadata: { own: '1' } }), []],
    ['browser-use', 10, 'metadata', browserUse({ metadata: { own: '1' } }), []],
    ['browserbase', 40, 'userMetadata', browserbase({ userMetadata: { own: '1' } }), [LEASE_TAG, MARK_TAG]],
    ['browserbase', 52, 'userMetadata', browserbase({ userMetadata: { own: '1' } }), [LEASE_TAG]],
    ['browserbase', 58, 'userMetadata', browserbase({ userMetadata: { own: '1' } }), []],
  ])('%s with %i tags: our own tags where the service can store them', (...row) => {
    const [, count, field, service, own] = row;
    const tags = Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, '']));
    const lease = { ...LEASE, mark: 'host/1/x', tags };
    const { body } = service.acquire(lease)!;
    const { [field]: all } = body as Record<string, object>;
    expect(Object.keys(all!)).toEqual(['own', ...Object.keys(tags), ...own]);
    // A search for a tag that the session does not have would find nothing, and look like proof.
    const search = service.find!(lease);
    expect(Boolean(search)).toBe(own.includes(LEASE_TAG));
  });

  it.each<[string, BrowserService]>([
    ['browserbase', browserbase({ proxies: [{ type: 'external', password: 'canary-browserbase' }] })],
    ['steel', steel({ proxyUrl: 'http://ada:canary-steel@proxy.example.com' })],
    ['hyperbrowser', hyperbrowser({ proxyServerPassword: 'canary-hyperbrowser' })],
    ['anchor', anchor({ session: { proxy: { type: 'custom', password: 'canary-anchor' } } })],
    ['browser-use', browserUse({ customProxy: { host: 'proxy', port: 1, password: 'canary-browser-use' } })],
  ])('the password of a proxy, which no error of %s shows that repeats the request', (_name, service) => {
    // As a pool does for its service.
    hideParameters(service.secretParameters!);
    const body = JSON.stringify(service.acquire(LEASE)!.body);
    const error = serviceError({ status: 422, headers: {}, body }, {});
    expect(error.message).toContain('[redacted]');
    expectNoSecrets(error);
  });
});

const tagsOf = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`tag-${at}`, 'x']));
const LONG = { note: 'x'.repeat(500) };
const LABELS = { option: 'tags', limit: 'at most 10 labels for a browser, not 11' };
const METADATA = { option: 'tags', limit: 'at most 511 characters' };

describe('a name and tags that a service can not store', () => {
  it.each<[string, BrowserService, { most: object; more: object }, { option: string; limit: string }]>([
    ['browser-use', browserUse(), { most: { tags: tagsOf(10) }, more: { tags: tagsOf(11) } }, LABELS],
    [
      'browser-use',
      browserUse(),
      { most: { tags: tagsOf(9), name: 'a' }, more: { tags: tagsOf(10), name: 'a' } },
      LABELS,
    ],
    [
      'browser-use',
      browserUse({ metadata: tagsOf(8) }),
      { most: { tags: { a: '', b: '' } }, more: { tags: { a: '', b: '', c: '' } } },
      LABELS,
    ],
    [
      'browser-use',
      browserUse({ metadata: tagsOf(10) }),
      { most: {}, more: { name: 'a' } },
      { ...LABELS, option: 'name' },
    ],
    ['browserbase', browserbase(), { most: { tags: LONG }, more: { tags: { ...LONG, more: '' } } }, METADATA],
    [
      'browserbase',
      browserbase({ userMetadata: LONG }),
      { most: {}, more: { name: 'alice' } },
      { ...METADATA, option: 'name' },
    ],
  ])(
    '%s %#: is refused by the name of the option before anything is sent',
    async (name, service, { most, more }, { option, limit }) => {
      await using used = await open(name, { service });
      await used.run(most);
      expect(used.server.sessions).toHaveLength(1);
      const sent = used.server.requests.length;
      for (const error of [await rejection(used.lease(more)), await rejection(used.pool.acquire(more))]) {
        expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', option });
        expect(error.message).toContain(limit);
      }
      expect(used.server.requests).toHaveLength(sent);
    },
  );

  it.each<[string, BrowserService, string]>([
    ['browser-use', browserUse({ metadata: tagsOf(11) }), 'metadata'],
    ['browserbase', browserbase({ userMetadata: { note: 'x'.repeat(512) } }), 'userMetadata'],
  ])('%s: so is an option of the service with too much', async (name, service, option) => {
    await using used = await open(name, { service });
    expect(await rejection(used.lease())).toMatchObject({ option });
    expect(used.server.requests).toEqual([]);
  });
});

it('a session of Browserbase is kept alive with reconnect, and else neither detached nor reconnected', async () => {
  await using used = await open('browserbase');
  const short = await leaseBrowser(used.pool, { connector: plainConnector });
  for (const call of [short.detach(), short.reconnect()])
    expect(await rejection(call)).toMatchObject({ name: 'InvalidOptionError' });
  await short.release();
  const kept = await leaseBrowser(used.pool, { connector: plainConnector, reconnect: 'lazy' });
  await kept.reconnect();
  const { sessionId } = await kept.detach();
  expect(used.server.active.map(({ id }) => id)).toEqual([sessionId]);
  await used.pool.release(sessionId);
});

it('cloudflare: the options are the query, and a spent day is no reason to wait', async () => {
  const service = cloudflare({ baseUrl: 'https://x.test/a', keepAlive: 600_000, recording: true });
  expect(service.acquire(LEASE)!.path).toBe('/devtools/browser?keep_alive=600000&recording=true');
  expect(cloudflare({ accountId: 'a/b' }).baseUrl).toBe(
    'https://api.cloudflare.com/client/v4/accounts/a%2Fb/browser-rendering',
  );
  expect(() => cloudflare({})).toThrow('cloudflare needs accountId');
  // Half of the time after which the service ends a browser without commands.
  expect([service.keepAlive, cloudflare({ accountId: 'a' }).keepAlive]).toEqual([300_000, 30_000]);
  await using used = await open('cloudflare');
  const errors = [{ message: 'Browser time limit exceeded for today' }];
  used.server.refusals.push(answerWith(429), answerWith(429, {}, { success: false, errors }));
  const error = await rejection(used.lease());
  expect(error).toMatchObject({ status: 429, message: expect.stringContaining('for today') as string });
  expect(used.server.requests).toEqual(['POST /devtools/browser', 'POST /devtools/browser']);
});

it('selenium grid creates no session: the request is repeated only if it timed out in the queue', async () => {
  const { meaning } = contractOf('selenium grid').service;
  const refused = (message: string) =>
    meaning!(500, { value: { error: 'session not created', message: `Could not start it. ${message}` } });
  expect(refused('New session request timed out')).toBe('unavailable');
  expect(refused('No nodes support the capabilities in the request')).toBe('refused');
  expect(meaning!(500, { value: { error: 'unknown error' } })).toBeUndefined();
  await using used = await open('selenium grid');
  const json = { value: { error: 'session not created', message: 'request timed out' } };
  used.server.refusals.push(answerWith(500, {}, json));
  const lease = await used.lease();
  expect(used.server.requests).toEqual(['POST /session', 'POST /session']);
  await lease.end({ status: 'ok' });
});
