import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { beforeEach, expect, it, vi } from 'vitest';
import {
  BrowserLostError,
  PoolClosedError,
  withPooledBrowser,
  type ArtifactsOptions,
  type Connector,
  type RunOptions,
} from '../../../src/index.js';
import { useFakeClock, useRealClock } from '../../support/fake-clock.js';
import { PlayedLease, type PlayedHandles } from '../../support/played-lease.js';

type Observe = NonNullable<Awaited<ReturnType<Connector<PlayedHandles>['connect']>>['observe']>;
type Observation = ReturnType<Observe>;
type Report = Parameters<NonNullable<Parameters<Observe>[0]['onReport']>>[0];

const MESSAGE: Report = { type: 'console', page: 'https://shop/', level: 'error', text: 'no stock' };
const mine = new Error('mine');
const fail = () => Promise.reject(mine);

let folder: string;
beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), 'artifacts-')), 'not', 'there', 'yet');
});

/** A call whose connector observes one page, which reports a message and can be photographed. */
async function observe(
  artifacts: Partial<ArtifactsOptions> = {},
  fn: (played: PlayedLease) => unknown = fail,
  { parts = {}, ...options }: RunOptions & { parts?: Partial<Observation> & { reports?: Report[] } } = {},
) {
  await using played = await PlayedLease.start();
  let stopped = 0;
  const { reports = [MESSAGE], ...replaced } = parts;
  const connector: Connector<PlayedHandles> = {
    ...played.connector,
    canTrace: true,
    connect: async (request) => ({
      ...(await played.connector.connect(request)),
      observe: ({ scope, onReport }) => {
        expect(scope).toBe('browser');
        for (const report of reports) onReport?.(report);
        const screenshots = () => [async () => Buffer.from('a picture')];
        const trace = { start: async () => {}, stop: async (path?: string) => path && writeFile(path, 'PK') };
        const stop = () => {
          stopped++;
          replaced.stop?.();
        };
        return { screenshots, trace, ...replaced, stop };
      },
    }),
  };
  const onEvent: RunOptions['onEvent'] = (event) => {
    played.events.push(event);
    options.onEvent?.(event);
  };
  const settings = {
    replays: 'off',
    ...options,
    onEvent,
    connector,
    artifacts: { folder, ...artifacts },
  } as const;
  const running = withPooledBrowser(played.pool, () => fn(played), settings);
  const error: unknown = await running.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  await played.pool.close();
  const run = played.told('ended')[0]!.summary;
  const names = run.artifacts.map((path) => basename(path));
  const text = names[0] === 'console.jsonl' ? readFileSync(run.artifacts[0]!, 'utf8').trimEnd() : '';
  const log = text === '' ? [] : text.split('\n').map((line) => JSON.parse(line) as Record<string, unknown>);
  return { played, error, run, names, log, stopped };
}

it('has the log, a screenshot and a trace of a failed run, in a private folder with the name of the lease', async () => {
  const { error, run, names, log, stopped, played } = await observe({ trace: true }, fail, {
    name: 'check..out',
  });
  expect(error).toBe(mine);
  expect(names).toEqual(['console.jsonl', 'screenshot.png', 'trace.zip']);
  for (const path of run.artifacts) expect(statSync(path).mode & 0o777).toBe(0o600);
  const own = dirname(run.artifacts[0]!);
  expect(dirname(own)).toBe(folder);
  expect(basename(own)).toMatch(/^check-out-\w{6}$/);
  expect(log).toMatchObject([{ ...MESSAGE, time: expect.stringMatching(/^\d{4}-.*Z$/) as string }]);
  expect(run).toMatchObject({ released: 'reused', cleanupErrors: [] });
  const types = played.events.map(({ type }) => type);
  const order = types.filter((type) => /^(artifacts|cleaned|released)/.test(type));
  expect(order).toEqual(['artifacts-collected', 'cleaned-up', 'released']);
  expect(played.told('artifacts-collected')).toMatchObject([
    { sessionId: 'session-1', paths: run.artifacts, errors: [] },
  ]);
  expect(stopped).toBe(1);
});

it("writes nothing after a success, except with on: 'always'", async () => {
  let traces = 0;
  const trace = { start: async () => {}, stop: async (path?: string) => void (traces += path ? 100 : 1) };
  const succeed = () => 'value';
  const quiet = await observe({ trace: true }, succeed, { parts: { trace } });
  expect([quiet.names, readdirSync(folder), quiet.stopped, traces]).toEqual([[], [], 1, 1]);
  expect(quiet.played.told('artifacts-collected')).toEqual([]);
  const always = await observe({ on: 'always', console: false }, succeed);
  expect(always.names).toEqual(['screenshot.png']);
  // Its folder has the name of the pool.
  expect(readdirSync(folder)).toMatchObject([expect.stringMatching(/^test-\w{6}$/)]);
  const nothing = await observe({ on: 'always', console: false, screenshot: false }, succeed);
  expect(nothing.names).toEqual([]);
  expect(readdirSync(folder)).toHaveLength(1);
});

it('has everything after a timeout, and only the log after an abort, the loss of the browser or the end of the pool', async () => {
  const never = () => new Promise(() => {});
  const late = await observe({ trace: true }, never, { timeout: 50 });
  expect(late.names).toEqual(['console.jsonl', 'screenshot.png', 'trace.zip']);
  const caller = new AbortController();
  const abort = () => caller.abort(mine);
  const aborted = await observe({ trace: true }, abort, { signal: caller.signal });
  expect([aborted.error, aborted.names]).toEqual([mine, ['console.jsonl']]);
  const lose = (played: PlayedLease) => (played.requests[0]!.socket.cut('dropped'), never());
  const lost = await observe({ trace: true }, lose);
  expect(lost.error).toBeInstanceOf(BrowserLostError);
  expect(lost.names).toEqual(['console.jsonl']);
  const closed = await observe({ trace: true }, ({ pool }) => (void pool.close(), never()));
  expect(closed.error).toBeInstanceOf(PoolClosedError);
  expect(closed.names).toEqual(['console.jsonl']);
  for (const { run, stopped } of [late, aborted, lost, closed]) {
    expect(run).toMatchObject({ released: 'destroyed', cleanupErrors: [] });
    expect(stopped).toBe(1);
  }
});

it.each<[string, Partial<Observation>, string[], RegExp]>([
  [
    'screenshot',
    { screenshots: () => [fail] },
    ['console.jsonl', 'trace.zip'],
    /screenshot .* missing: mine/,
  ],
  [
    'trace',
    { trace: { start: fail, stop: fail } },
    ['console.jsonl', 'screenshot.png'],
    /trace .* missing: mine/,
  ],
])('a %s that fails is reported, and the rest is collected', async (_what, parts, expected, message) => {
  const { error, names, run, played } = await observe({ trace: true }, fail, { parts });
  expect(error).toBe(mine);
  expect(names).toEqual(expected);
  const errors = [{ name: 'ArtifactError', code: 'ERR_ARTIFACT', message: expect.stringMatching(message) }];
  expect(run).toMatchObject({ released: 'reused', cleanupErrors: errors });
  expect(played.told('artifacts-collected')).toMatchObject([{ errors }]);
});

it('releases the browser although the observation of its pages does not end', async () => {
  const stop = () => {
    throw new Error('no end');
  };
  const { error, run, names } = await observe({}, fail, { parts: { stop } });
  expect(error).toBe(mine);
  expect(names).toEqual(['console.jsonl', 'screenshot.png']);
  expect(run.cleanupErrors).toMatchObject([{ message: 'The pages may still be observed: no end' }]);
  expect(run.released).toBe('reused');
});

it('waits a limited time for a page that does not respond', async () => {
  const stall = () => {
    setImmediate(() => {
      vi.advanceTimersByTime(10_000);
      useRealClock();
    });
    return new Promise<never>(() => {});
  };
  const onEvent: RunOptions['onEvent'] = ({ type }) =>
    type === 'callback-ended' && useFakeClock({ toFake: ['setTimeout', 'clearTimeout'] });
  const { run } = await observe({ console: false }, fail, { parts: { screenshots: () => [stall] }, onEvent });
  expect(run.artifacts).toEqual([]);
  expect(run.cleanupErrors[0]!.message).toMatch(/screenshot .* The browser did not respond within 10 s\.$/);
  expect(readdirSync(folder)).toEqual([]);
});

it('ends the collection when the browser ends at the same time, and keeps the log', async () => {
  let lose!: () => void;
  const hang = () => (lose(), new Promise<never>(() => {}));
  const callback = (played: PlayedLease) => {
    lose = () => played.requests[0]!.socket.cut('dropped');
    return fail();
  };
  const { error, names, run } = await observe({}, callback, { parts: { screenshots: () => [hang] } });
  expect([error, names]).toEqual([mine, ['console.jsonl']]);
  expect(run.cleanupErrors[0]!.message).toContain('The WebSocket ended (dropped)');
});

it('limits the log to the latest messages, and long ones to their beginning, without secrets', async () => {
  const texts = [
    'http://user:my-password@shop/?id=my-id \x1b[31mred',
    ...Array.from({ length: 1200 }, (_, index) => `${index}`),
  ];
  const reports = [...texts.slice(1), 'x'.repeat(1e6), texts[0]!].map((text) => ({ ...MESSAGE, text }));
  const { log } = await observe({ screenshot: false }, fail, { parts: { reports } });
  expect(log).toHaveLength(1001);
  expect(log.slice(0, 2)).toMatchObject([{ type: 'dropped', count: 202 }, { text: '202' }]);
  expect(log.at(-2)!['text']).toBe(`${'x'.repeat(4000)}…`);
  const last = String(log.at(-1)!['text']);
  expect(last).toMatch(/shop\/\?id=\[redacted\] red$/);
  for (const part of ['my-', '\x1b']) expect(last).not.toContain(part);
});

it("leaves the caller's error unchanged when nothing can be written", async () => {
  const replaceFolder = () => {
    rmSync(folder, { recursive: true });
    writeFileSync(folder, '');
    throw mine;
  };
  const { error, run } = await observe({}, replaceFolder);
  expect(error).toBe(mine);
  expect(run).toMatchObject({
    artifacts: [],
    released: 'reused',
    cleanupErrors: [{ name: 'ArtifactError' }],
  });
});

it.each([
  ['artifacts.folder', (folder: string) => ({ artifacts: { folder } })],
  ['downloads', (folder: string) => ({ downloads: folder })],
])('refuses a folder of %s that can not be written before anything is sent', async (option, options) => {
  await using played = await PlayedLease.start();
  const file = join(mkdtempSync(join(tmpdir(), 'file-')), 'file');
  writeFileSync(file, '');
  const { error } = await played.run(undefined, options(join(file, 'artifacts')));
  const message = expect.stringMatching(
    new RegExp(`^${option} .*file/artifacts can't be written: ENOTDIR`),
  ) as string;
  expect(error).toMatchObject({ name: 'InvalidOptionError', option, message });
  expect(played.service.requests).toEqual([]);
});

it('has no artifacts with a connector that does not observe pages, or fails to', async () => {
  await using played = await PlayedLease.start();
  const artifacts = { folder, on: 'always' } as const;
  const { run } = await played.run(undefined, { artifacts });
  expect(run).toMatchObject({ artifacts: [], cleanupErrors: [] });
  const connector: Connector<PlayedHandles> = {
    ...played.connector,
    connect: async (request) => ({
      ...(await played.connector.connect(request)),
      observe: () => {
        throw new Error('no events');
      },
    }),
  };
  const message = 'There are no artifacts, because the pages cannot be observed: no events';
  const failing = await withPooledBrowser(played.pool, () => 'done', { connector, artifacts });
  expect(failing).toMatchObject({
    value: 'done',
    artifacts: [],
    cleanupErrors: [{ name: 'ArtifactError', message }],
  });
  expect(readdirSync(folder)).toEqual([]);
});
