import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { expect, it, onTestFinished } from 'vitest';
import { MapReport } from '../../src/cli/map-report.js';
import { loadScript } from '../../src/cli/map-script.js';
import { addTaskOptions, settingsOf, workSettingsOf, type TaskOptions } from '../../src/cli/task-command.js';

/** The options of the library for these flags. */
function settings(read: typeof settingsOf, ...flags: string[]) {
  const command = addTaskOptions(new Command()).parse(flags, { from: 'user' });
  const { signal } = new AbortController();
  using report = new MapReport(undefined, { signal, text: '' });
  const {
    onEvent: _onEvent,
    onProgress: _onProgress,
    ...options
  } = read(command.opts<TaskOptions>(), report);
  return options;
}

const DEFAULTS = {
  concurrency: 4,
  pagesPerLease: 1,
  isolation: 'context',
  protocol: 'cdp',
  release: 'auto',
  replays: 'list',
  acquireTimeout: 300_000,
  unreachableTimeout: 30_000,
  pollTimeout: 5000,
};

it.each<[flags: string, options: object]>([
  ['', {}],
  [
    '--concurrency 2 --pages-per-lease 3 --tasks-per-lease 4 --task-timeout 5s',
    { concurrency: 2, pagesPerLease: 3, tasksPerLease: 4, taskTimeout: 5000 },
  ],
  ['--host-concurrency 1 --host-delay 100ms', { hostConcurrency: 1, hostDelay: 100 }],
  ['--isolation none --protocol bidi', { isolation: 'none', protocol: 'bidi' }],
  [
    '--release destroy --replays off --release-on-crash',
    { release: 'destroy', replays: 'off', releaseOnCrash: true },
  ],
  ['--name job --tag a=1 --tag b=2', { name: 'job', tags: { a: '1', b: '2' } }],
  [
    '--start-url https://a.test --expose-network a.test',
    { startUrl: 'https://a.test', exposeNetwork: 'a.test' },
  ],
  ['--acquire-timeout 1m --unreachable-timeout 1s', { acquireTimeout: 60_000, unreachableTimeout: 1000 }],
  ['--artifacts a', { artifacts: { folder: 'a', on: 'failure', trace: false } }],
  ['--artifacts a --artifacts-on always --trace', { artifacts: { folder: 'a', on: 'always', trace: true } }],
])('the flags "%s" set the options of the library', (flags, options) => {
  expect(settings(settingsOf, ...flags.split(' ').filter(Boolean))).toEqual({ ...DEFAULTS, ...options });
});

it('a worker waits at most a minute for a browser, and releases it also after SIGKILL', () => {
  const worker = { ...DEFAULTS, acquireTimeout: 60_000, releaseOnCrash: true };
  expect(settings(workSettingsOf)).toEqual(worker);
  expect(settings(workSettingsOf, '--acquire-timeout', '2s')).toEqual({ ...worker, acquireTimeout: 2000 });
});

it('the exports of a script are the task and options of the job', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'script-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'task.mjs');
  writeFileSync(
    path,
    `export default () => 'value';
    export const shouldRetry = () => false;
    export const contextOptions = { locale: 'de' };
    export const hostOf = () => 'host';
    export const other = 1;`,
  );
  const { task, options } = await loadScript(path);
  expect(task({})).toBe('value');
  expect(options).toEqual({
    shouldRetry: expect.any(Function) as unknown,
    contextOptions: { locale: 'de' },
    hostOf: expect.any(Function) as unknown,
  });
});
