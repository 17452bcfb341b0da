/** The part of `npm run build` after tsc, which writes only declarations: bundles each entry, and the scripts of the pages. */
import { chmodSync, readdirSync } from 'node:fs';
import { build } from 'esbuild';

const entries = readdirSync('src').filter((name) => name.endsWith('.ts'));

await bundleForNode('dist', Object.fromEntries(entries.map((name) => [name.slice(0, -3), `src/${name}`])));
await bundleForNode('dist/cli', { main: 'src/cli/main.ts' });
chmodSync('dist/cli/main.js', 0o755);
await build({
  entryPoints: ['dashboard', 'live', 'replay'].map((name) => `src/local/pages/browser/${name}.ts`),
  outdir: 'dist/local/pages/browser',
  bundle: true,
  format: 'esm',
  target: 'es2022',
  logLevel: 'warning',
});

/** Each bundle has its own copy of the programs that the library starts as other processes. */
async function bundleForNode(outdir, entryPoints) {
  const programs = {
    'release-process': 'src/service/release-process.ts',
    'local-process': 'src/local/local-process.ts',
  };
  await build({
    entryPoints: { ...programs, ...entryPoints },
    outdir,
    bundle: true,
    splitting: true,
    chunkNames: '[name]-[hash]',
    packages: 'external',
    // These packages are bundled.
    alias: {
      valibot: './node_modules/valibot/dist/index.mjs',
      leven: './node_modules/leven/index.js',
      mediabunny: './node_modules/mediabunny/dist/modules/src/index.js',
    },
    format: 'esm',
    platform: 'node',
    target: 'node20',
    logLevel: 'warning',
  });
}
