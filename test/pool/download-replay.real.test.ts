import { readdirSync, statSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, expect, vi } from 'vitest';
import { InvalidOptionError, ReplayNotReadyError } from '../../src/index.js';
import type { Answer } from '../support/fake-service.js';
import { settle, until } from '../support/played-browser.js';
import { expectNoSecrets } from '../support/collected.js';
import { hang, it, rejection, reset } from './support.js';
import { useFakeClock } from '../support/fake-clock.js';

const MP4 = { 'content-type': 'video/mp4' };

let folder: string;
let path: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'download-'));
  path = join(folder, 'video.mp4');
});

afterEach(() => rm(folder, { recursive: true }));

const filesLeft = () => readdir(folder);

it('writes the video, and reports the progress', async ({ service, pool }) => {
  const film = Buffer.alloc(300_000, 7);
  const headers = { ...MP4, 'content-length': String(film.length) };
  service.script('download', (response) => void response.writeHead(200, headers).end(film));
  const progress: { received: number; total?: number }[] = [];
  const result = await pool.downloadReplay('s', 'r', path, { onProgress: (step) => progress.push(step) });
  expect(result).toEqual({ path, bytes: film.length, type: 'video/mp4' });
  expect(film.equals(await readFile(path))).toBe(true);
  // A recording can show secrets.
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(progress.at(-1)).toEqual({ received: film.length, total: film.length });
  expect(progress.map(({ received }) => received)).toEqual(
    progress.map(({ received }) => received).toSorted((a, b) => a - b),
  );
  expect(await filesLeft()).toEqual(['video.mp4']);
  expect(service.requests).toMatchObject([{ method: 'GET', path: '/browsers/s/replays/r' }]);
});

it('repeats the request after Retry-After while the video is being written', async ({ service, pool }) => {
  service.script(
    'download',
    { status: 202, headers: { 'retry-after': '1' } },
    { status: 202, headers: { 'retry-after': '0' } },
    { status: 200, text: 'video' },
  );
  expect(await pool.downloadReplay('s', 'r', path)).toEqual({ path, bytes: 5 });
  const [first, second] = service.of('download');
  expect(second!.at - first!.at).toBeGreaterThan(900);
  expect(service.of('download')).toHaveLength(3);
});

it('fails with ReplayNotReadyError if the video is not written in time', async ({ service, pool }) => {
  service.script('download', { status: 202, headers: { 'retry-after': '3600' } });
  const error = await rejection(pool.downloadReplay('s', 'r', path, { timeout: 60_000 }));
  expect(error).toBeInstanceOf(ReplayNotReadyError);
  expect(error).toMatchObject({ code: 'ERR_REPLAY_NOT_READY', pool: 'pool', sessionId: 's' });
  expect(await filesLeft()).toEqual([]);
});

it('downloads a video without holding it in memory', async ({ service, pool }) => {
  const [chunk, count] = [Buffer.alloc(1024 * 1024), 200];
  // Bytes that the service has sent and that are not in the file.
  let most = 0;
  function* film() {
    const file = join(folder, readdirSync(folder)[0]!);
    for (let sent = 0; sent < chunk.length * count; sent += chunk.length) {
      most = Math.max(most, sent - statSync(file).size);
      yield chunk;
    }
  }
  service.script('download', (response) => {
    response.writeHead(200, MP4);
    Readable.from(film()).pipe(response);
  });
  const { bytes } = await pool.downloadReplay('s', 'r', path);
  expect(bytes).toBe(chunk.length * count);
  expect((await stat(path)).size).toBe(bytes);
  expect(most).toBeLessThan(bytes / 2);
});

it('lets a download that has started take longer than the timeout', async ({ service, pool }) => {
  let end!: () => void;
  service.script('download', (response) => {
    response.writeHead(200, MP4).write('fi');
    end = () => response.end('lm');
  });
  // The first request starts the timer that all connections share: it must be a real one.
  await pool.flush();
  useFakeClock({ toFake: ['setTimeout', 'clearTimeout'] });
  const onProgress = ({ received }: { received: number }) => {
    if (received !== 2) return;
    vi.advanceTimersByTime(10_000);
    // The timeout would abort the download in a later iteration of the event loop.
    void settle().then(end);
  };
  const result = await pool.downloadReplay('s', 'r', path, { timeout: 5000, onProgress });
  expect(result).toMatchObject({ bytes: 4 });
});

it.for<[string, Answer, object]>([
  ['404', { status: 404, json: { code: 'not_found', message: 'no' } }, { status: 404, code: 'not_found' }],
  ['401', { status: 401 }, { status: 401 }],
  ['500', { status: 500, text: 'oops' }, { status: 500 }],
  ['a redirect', { status: 302, headers: { location: 'https://elsewhere.test/video' } }, { status: 302 }],
  [
    'a page',
    { status: 200, text: '<p>', headers: { 'content-type': 'text/html' } },
    { code: 'ERR_POOL_RESPONSE' },
  ],
  ['an empty 204', { status: 204 }, { code: 'ERR_POOL_RESPONSE' }],
  [
    'gzip',
    { status: 200, text: 'x', headers: { 'content-encoding': 'gzip' } },
    { code: 'ERR_POOL_RESPONSE' },
  ],
  ['a reset', reset, { code: 'ERR_POOL_NO_RESPONSE' }],
  [
    'half of the video',
    (response) => {
      response.writeHead(200, { ...MP4, 'content-length': '1000' }).write('half a video');
      setTimeout(() => response.destroy(), 50);
    },
    { code: 'ERR_POOL_NO_RESPONSE' },
  ],
])('fails after %s, and keeps the existing file', async ([, answer, facts], { service, pool }) => {
  await writeFile(path, 'before');
  service.script('download', answer);
  const error = await rejection(pool.downloadReplay('s', 'r', path));
  expect(error).toMatchObject({ pool: 'pool', sessionId: 's', ...facts });
  expectNoSecrets(error);
  expect(await filesLeft()).toEqual(['video.mp4']);
  expect(await readFile(path, 'utf8')).toBe('before');
  expect(service.of('download')).toHaveLength(1);
});

it.for<[string, Answer]>([
  ['before the response', hang],
  ['between two requests', { status: 202, headers: { 'retry-after': '30' } }],
  ['in the middle of the download', (response) => void response.writeHead(200, MP4).write('half')],
])('ends with its signal %s, and leaves no file', async ([, answer], { service, pool }) => {
  const caller = new AbortController();
  const reason = new Error('mine');
  service.script('download', answer);
  const downloading = pool.downloadReplay('s', 'r', path, { signal: caller.signal });
  await until(() => service.of('download').length === 1);
  setTimeout(() => caller.abort(reason), 50);
  expect(await rejection(downloading)).toBe(reason);
  expect(await filesLeft()).toEqual([]);
});

it('rethrows an error of the file system or of onProgress, and leaves no file', async ({ service, pool }) => {
  const nowhere = join(folder, 'missing', 'video.mp4');
  expect(await rejection(pool.downloadReplay('s', 'r', nowhere))).toMatchObject({ code: 'ENOENT' });
  expect(service.requests).toEqual([]);
  service.script('download', { status: 200, text: 'video' });
  const mine = new Error('mine');
  const onProgress = () => {
    throw mine;
  };
  expect(await rejection(pool.downloadReplay('s', 'r', path, { onProgress }))).toBe(mine);
  expect(await filesLeft()).toEqual([]);
  await mkdir(path);
  expect(await rejection(pool.downloadReplay('s', 'r', path))).toMatchObject({ code: 'EISDIR' });
  expect(await filesLeft()).toEqual(['video.mp4']);
});

it('rejects invalid arguments before anything is sent', async ({ service, pool }) => {
  const calls = [
    pool.downloadReplay('..', 'r', path),
    pool.downloadReplay('s', 'a/b', path),
    pool.downloadReplay('s', 'r', ''),
    pool.downloadReplay('s', 'r', path, { timeout: 0 }),
    pool.downloadReplay('s', 'r', path, { onProgress: true as never }),
    pool.downloadReplay('s', 'r', path, { overwrite: true } as never),
  ];
  for (const error of await Promise.all(calls.map((call) => rejection(call))))
    expect(error).toBeInstanceOf(InvalidOptionError);
  expect(service.requests).toEqual([]);
  expect(await filesLeft()).toEqual([]);
});
