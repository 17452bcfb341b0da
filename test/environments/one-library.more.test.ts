import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { installWithoutLibraries } from '../cli/support.js';
import { startProgram } from '../support/program.js';

const LOCAL = { BROWSER_POOL_BASE_URL: 'local' };

function write(name: string, text: string): string {
  const path = join(mkdtempSync(join(tmpdir(), 'one-')), name);
  writeFileSync(path, text);
  return path;
}

const TASK = `export default async ({ input, page }) => {
  await page.goto('data:text/html,<title>' + input);
  return [await page.title(), typeof page.setViewport];
};`;

it('map, exec and doctor use Puppeteer where it is the only library', async () => {
  const main = installWithoutLibraries('puppeteer-core');
  const run = (...args: string[]) => startProgram([main, ...args], LOCAL).ended;
  const inputs = write('inputs.txt', 'Shop\n');
  const out = `${inputs}.jsonl`;
  const map = await run('map', 'local', write('task.mjs', TASK), inputs, '--out', out);
  expect(map.code, map.stderr).toBe(0);
  expect(JSON.parse(readFileSync(out, 'utf8'))).toMatchObject({ value: ['Shop', 'function'] });
  const exec = await run('exec', 'local', '--record', '--', 'true');
  expect(exec.code, exec.stderr).toBe(0);
  const doctor = await run('doctor', 'local');
  expect(doctor.code, doctor.stdout).toBe(0);
  expect(doctor.stdout).toMatch(/✓ puppeteer cdp /);
  expect(doctor.stdout).toMatch(/- playwright cdp .*playwright-core is not installed/);
}, 240_000);

it('names all packages that a queue lacks, with one command, before anything is sent', async () => {
  const main = installWithoutLibraries('puppeteer-core');
  const redis = { ...LOCAL, REDIS_URL: 'redis://127.0.0.1:2' };
  const words = ['work', 'local', write('task.mjs', TASK), '--queue', 'q'];
  const { code, stderr } = await startProgram([main, ...words], redis).ended;
  expect(code).toBe(1);
  expect(stderr).toContain(
    'The packages bullmq and ioredis could not be loaded. Install them: npm install bullmq ioredis',
  );
});

it('prints one line, and no source of the package, for an error that a script throws late', async () => {
  const main = installWithoutLibraries('puppeteer-core');
  const script = write(
    'late.mjs',
    "export default () => new Promise(() => setTimeout(() => { throw new Error('thrown late'); }));",
  );
  const ended = await startProgram([main, 'map', 'local', script, write('inputs.txt', 'a\n')], LOCAL).ended;
  expect(ended).toEqual({
    code: 1,
    stdout: '',
    stderr: 'pooled-browser: thrown late. To see the stack, add --debug.\n',
  });
});
