import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';

/** Replaces Chromium, which would write its profile: this process is found by its arguments only. */
const idle = ['-e', 'setInterval(() => {}, 1000)', '--'];

it('passes, and leaves a browser without a handle in this process', () => {
  const profile = join(tmpdir(), 'pooled-browser-left');
  const env = { PATH: process.env['PATH'] };
  const browser = spawn(process.execPath, [...idle, `--user-data-dir=${profile}`], {
    detached: true,
    stdio: 'ignore',
    env,
  });
  browser.unref();
  expect(browser.pid).toBeGreaterThan(0);
});
