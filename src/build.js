/** The part of `npm run build` after tsc, which writes only declarations: bundles each entry, and the scripts of the pages. */
import { chmodSync, existsSync, readdirSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import * as esbuild from 'esbuild';
import { rollup } from 'rollup';

/** These packages are bundled. All others are dependencies. */
const BUNDLED = {
  valibot: 'node_modules/valibot/dist/index.mjs',
  leven: 'node_modules/leven/index.js',
  mediabunny: 'node_modules/mediabunny/dist/modules/src/index.js',
};
const PROGRAMS = {
  'release-process': 'src/service/release-process.ts',
  'local-process': 'src/local/local-process.ts',
};

const typescript = {
  name: 'typescript',
  resolveId(source, importer) {
    if (source in BUNDLED) return resolve(BUNDLED[source]);
    if (!importer) return resolve(source);
    const path = resolve(dirname(importer), source.replace(/\.js$/, '.ts'));
    return existsSync(path) ? path : undefined;
  },
  async transform(code, id) {
    // Packages have long comments.
    if (!id.endsWith('.ts')) return (await esbuild.transform(code, { minifyWhitespace: true })).code;
    return (await esbuild.transform(code, { loader: 'ts', target: 'node20', sourcefile: id })).code;
  },
};

const entries = readdirSync('src').filter((name) => name.endsWith('.ts'));
await bundleForNode('dist', Object.fromEntries(entries.map((name) => [name.slice(0, -3), `src/${name}`])));
await bundleForNode('dist/cli', { main: 'src/cli/main.ts' });
chmodSync('dist/cli/main.js', 0o755);
await esbuild.build({
  entryPoints: ['dashboard', 'live', 'replay'].map((name) => `src/local/pages/browser/${name}.ts`),
  outdir: 'dist/local/pages/browser',
  bundle: true,
  format: 'esm',
  target: 'es2022',
  logLevel: 'warning',
});

/** Each bundle has its own copy of the programs that the library starts as other processes. */
async function bundleForNode(dir, input) {
  for (const part of [PROGRAMS, input]) {
    const bundle = await rollup({ input: part, plugins: [typescript], external: isExternal, onwarn });
    await bundle.write({
      dir,
      format: 'es',
      chunkFileNames: '[name]-[hash].js',
      manualChunks: rootInOneFile,
    });
    await bundle.close();
  }
}

/** What the root entry loads is one file: Node needs most of the time of an import for the number of files. */
function rootInOneFile(id, { getModuleInfo }) {
  const root = resolve('src/index.ts');
  if (!getModuleInfo(root)) return undefined;
  const found = new Set([root]);
  for (const one of found) for (const to of getModuleInfo(one).importedIds) found.add(to);
  return found.has(id) && id !== root ? 'core' : undefined;
}

/** A warning about our own files is an error. */
function onwarn({ code, id = '', ids = [id], message }) {
  if (!ids.every((one) => one.includes('node_modules'))) throw new Error(`${code}: ${message}`);
}

function isExternal(source) {
  return !/^[./]/.test(source) && !(source in BUNDLED);
}
