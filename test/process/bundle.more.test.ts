import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { build, stop } from 'esbuild';
import { beforeAll, expect, it } from 'vitest';
import { PlayedLease } from '../support/played-lease.js';
import { startProgram, variablesOf } from '../support/program.js';

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

/** The application in one file, in a folder of its own, for each format. */
const files = { esm: '', cjs: '' };

beforeAll(async () => {
  for (const format of ['esm', 'cjs'] as const) {
    files[format] = join(mkdtempSync(join(tmpdir(), 'bundle-')), format === 'esm' ? 'app.mjs' : 'app.cjs');
    await build({
      stdin: { contents: PROGRAM, resolveDir: dirname(files[format]) },
      outfile: files[format],
      bundle: true,
      platform: 'node',
      format,
      logLevel: 'error',
      ...(format === 'esm' && { banner: { js: REQUIRE } }),
    });
  }
  await stop();
});

const startBundle = (format: 'esm' | 'cjs', way: string, service: { baseUrl: string; token: string }) =>
  startProgram([files[format], way], variablesOf(service), { cwd: dirname(files[format]) });

it.each([
  ['exit', 'esm'],
  ['exit', 'cjs'],
  ['SIGKILL', 'esm'],
  ['SIGKILL', 'cjs'],
] as const)('releases the browser at %s in an application of one file (%s)', async (way, format) => {
  await using played = await PlayedLease.start();
  const { service } = played;
  const program = startBundle(format, way, service.options);
  if (way === 'SIGKILL') {
    await program.prints(/leased/);
    program.child.kill('SIGKILL');
  }
  const { stdout, stderr } = await program.ended;
  expect(stdout + stderr).toBe(way === 'exit' ? '' : 'leased');
  await expect.poll(() => service.released).toEqual(['session-1']);
});

it.each(['esm', 'cjs'] as const)(
  "says what baseUrl: 'local' lacks in an application of one file (%s)",
  async (format) => {
    const { stdout } = await startBundle(format, 'local', { baseUrl: 'http://127.0.0.1:1', token: 'any' })
      .ended;
    expect(stdout).toMatch(/^LocalPoolError: .* Install the package beside the bundle/);
  },
);
