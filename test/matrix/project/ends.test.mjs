// How programs end, and the commands, with the runtime that runs this file: `node --test`, `bun test`, `deno test`.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { BrowserPool } from 'pooled-browser';
import { startLocalPool } from 'pooled-browser/local';
import { withPooledBrowser } from 'pooled-browser/playwright';
import * as puppeteer from 'pooled-browser/puppeteer';
import { cdp } from 'pooled-browser/services';
import { command, Program, programOf } from './run.mjs';

const folder = await mkdtemp(join(tmpdir(), 'ends-'));
const local = await startLocalPool({ pools: [{ name: 'default', size: 2 }] });
const env = { BROWSER_POOL_BASE_URL: local.baseUrl, BROWSER_POOL_ACCESS_TOKEN: local.token };
after(async () => {
  await local.close();
  await rm(folder, { recursive: true, force: true });
});

const noneLeased = async () => {
  for (let tries = 0; local.stats().leased > 0; tries++) {
    assert.ok(tries < 300, 'a browser stays leased');
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
};

describe('a program that holds a browser', () => {
  const ways = [
    ['SIGTERM', 'SIGTERM'],
    // The program handles it.
    ['SIGINT', 5],
    ['SIGKILL', 'SIGKILL'],
    ['exit', 3],
    ['exception', 1],
    ['rejection', 1],
  ];
  for (const [how, result] of ways) {
    it(`ends as without the library, and its browser is released: ${how}`, async () => {
      const granted = local.stats().granted;
      const program = new Program(programOf('program.mjs', how), env);
      await program.printed(/visited/);
      if (how.startsWith('SIG')) program.signal(how);
      assert.equal(await program.ended, result, program.output);
      await noneLeased();
      assert.equal(local.stats().granted, granted + 1);
    });
  }
});

it('uses the browsers of this machine, and ends by itself', async () => {
  const program = new Program(programOf('program.mjs', 'embedded'), {
    BROWSER_POOL_BASE_URL: 'local',
    BROWSER_POOL_LOCAL_SIZE: '1',
    BROWSER_POOL_LOCAL_RECORDINGS: folder,
  });
  assert.equal(await program.ended, 0, program.output);
  assert.equal(program.output, 'visited reused\n'.repeat(3));
});

describe('the command', () => {
  it('exec runs a program with a browser, passes a signal on, and ends with its exit code', async () => {
    // It handles the signal, and ends with a code of its own.
    const line = 'trap "exit 7" TERM; echo $BROWSER_POOL_CDP_WS_URL; while :; do sleep 0.1; done';
    const program = new Program(command('exec', 'default', '--', '/bin/sh', '-c', line), env);
    await program.printed(/^ws:\/\/127\.0\.0\.1:/m);
    program.signal('SIGTERM');
    assert.equal(await program.ended, 7, program.output);
    await noneLeased();
  });

  it('map continues a job that was killed', async () => {
    const [inputs, out] = [join(folder, 'inputs'), join(folder, 'out.jsonl')];
    const all = Array.from({ length: 6 }, (_, index) => `input-${index}`);
    await writeFile(inputs, all.join('\n'));
    const words = [
      'map',
      'default',
      'task.mjs',
      inputs,
      '--out',
      out,
      '--concurrency',
      '1',
      '--release-on-crash',
    ];
    const killed = new Program(command(...words), env);
    while ((await readFile(out, 'utf8').catch(() => '')).split('\n').length < 3)
      await new Promise((resolve) => setTimeout(resolve, 20));
    killed.signal('SIGKILL');
    await killed.ended;
    const resumed = new Program(command(...words, '--resume'), env);
    assert.equal(await resumed.ended, 0, resumed.output);
    const values = (await readFile(out, 'utf8')).match(/(?<="value":")input-\d/g);
    assert.deepEqual(values.toSorted(), all);
    await noneLeased();
  });

  it('proxy serves an address, also for the service cdp, and ends at SIGTERM', async () => {
    const proxy = new Program(command('proxy', 'default', '--port', '0', '--json'), env);
    const [, url] = await proxy.printed(/"url":\s*"(http[^"]+)"/);
    const pool = new BrowserPool('proxied', { service: cdp(url) });
    const visit = async ({ page }) => page.evaluate('6 * 7');
    assert.equal((await withPooledBrowser(pool, visit)).value, 42);
    assert.equal((await puppeteer.withPooledBrowser(pool, visit)).value, 42);
    await pool.close();
    proxy.signal('SIGTERM');
    assert.equal(await proxy.ended, 0, proxy.output);
    await noneLeased();
  });
});
