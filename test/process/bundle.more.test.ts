import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build, stop } from 'esbuild';
import { afterAll, expect, it, onTestFinished } from 'vitest';
import { PlayedLease } from '../support/played-lease.js';

const PROGRAM = `
  import { BrowserPool, leaseBrowser } from ${JSON.stringify(join(process.cwd(), 'dist/index.js'))};
  import { connector } from ${JSON.stringify(join(process.cwd(), 'test/process/programs/plain.mjs'))};

  async function main(way) {
    if (way === 'local') return new BrowserPool('test', { baseUrl: 'local' }).acquire();
    await leaseBrowser('test', { connector, replays: 'off', releaseOnCrash: way === 'SIGKILL' });
    if (way === 'exit') process.exit(7);
    process.stdout.write('leased');
    await new Promise((resolve) => setTimeout(resolve, 60_000));
  }
  main(process.argv[2]).catch(({ name, message }) => process.stdout.write(name + ': ' + message));
`;
// Packages in CommonJS need it in every bundle of esbuild with modules.
const REQUIRE =
  "import { createRequire as createRequire0 } from 'node:module'; const require = createRequire0(import.meta.url);";

afterAll(stop);

/** Bundles an application with the library into the only file of a folder, and starts it there. */
async function startBundle(format: 'esm' | 'cjs', way: string, variables: Record<string, string> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'bundle-'));
  const outfile = join(folder, format === 'esm' ? 'app.mjs' : 'app.cjs');
  await build({
    stdin: { contents: PROGRAM, resolveDir: folder },
    outfile,
    bundle: true,
    platform: 'node',
    format,
    logLevel: 'error',
    ...(format === 'esm' && { banner: { js: REQUIRE } }),
  });
  const env = { ...process.env, BROWSER_POOL_ACCESS_TOKEN: 'the-token', ...variables };
  const child = spawn(process.execPath, [outfile, way], { cwd: folder, env });
  onTestFinished(() => void child.kill('SIGKILL'));
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += String(text)));
  return { child, output: () => output, ended: once(child, 'close') };
}

it.each([
  ['exit', 'esm'],
  ['exit', 'cjs'],
  ['SIGKILL', 'esm'],
  ['SIGKILL', 'cjs'],
] as const)('releases the browser at %s in an application of one file (%s)', async (way, format) => {
  await using played = await PlayedLease.start();
  const { service } = played;
  const { child, output, ended } = await startBundle(format, way, { BROWSER_POOL_BASE_URL: service.baseUrl });
  if (way === 'SIGKILL') {
    await expect.poll(output).toBe('leased');
    child.kill('SIGKILL');
  }
  await ended;
  expect(output()).toBe(way === 'exit' ? '' : 'leased');
  await expect.poll(() => service.released).toEqual(['session-1']);
});

it.each(['esm', 'cjs'] as const)(
  "says what baseUrl: 'local' lacks in an application of one file (%s)",
  async (format) => {
    const { output, ended } = await startBundle(format, 'local');
    await ended;
    expect(output()).toMatch(/^LocalPoolError: .* Install the package beside the bundle/);
  },
);
