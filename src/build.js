/** The part of `npm run build` after tsc, which writes only declarations: bundles each entry, and the scripts of the pages. */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import * as esbuild from 'esbuild';
import { rollup } from 'rollup';

/** These packages are bundled. All others are dependencies. */
const BUNDLED = {
  valibot: 'node_modules/valibot/dist/index.mjs',
  leven: 'node_modules/leven/index.js',
  mediabunny: 'node_modules/mediabunny/dist/modules/src/index.js',
};
const RELEASE_PROGRAM = resolve('src/pool/release-program.ts');

const typescript = {
  name: 'typescript',
  resolveId(source, importer) {
    if (source in BUNDLED) return resolve(BUNDLED[source]);
    if (!importer) return resolve(source);
    const path = resolve(dirname(importer), source.replace(/\.js$/, '.ts'));
    return existsSync(path) ? path : undefined;
  },
  async load(id) {
    if (id !== RELEASE_PROGRAM) return undefined;
    return `export const RELEASE_PROGRAM = ${JSON.stringify(await releaseProgram())};`;
  },
  async transform(code, id) {
    // Packages have long comments.
    if (!id.endsWith('.ts')) return (await esbuild.transform(code, { minify: true })).code;
    return (await esbuild.transform(code, { loader: 'ts', target: 'node20', sourcefile: id })).code;
  },
};

mkdirSync('dist', { recursive: true });
// For the source, which is not built.
writeFileSync('dist/release-process.js', await releaseProgram());
const entries = readdirSync('src').filter((name) => name.endsWith('.ts'));
await bundleForNode('dist', {
  'local-process': 'src/local/local-process.ts',
  'recording-process': 'src/local/recording-process.ts',
});
await bundleForNode('dist', {
  ...Object.fromEntries(entries.map((name) => [name.slice(0, -3), `src/${name}`])),
  'cli/main': 'src/cli/main.ts',
});
chmodSync('dist/cli/main.js', 0o755);
await esbuild.build({
  entryPoints: Object.fromEntries(pageScripts().map((path) => [basename(path, '.page.ts'), `src/${path}`])),
  outdir: 'dist/pages',
  bundle: true,
  format: 'esm',
  target: 'es2022',
  logLevel: 'warning',
});

removeUnreachableDeclarations();

/** tsc writes a declaration for each file. Users need those that an entry imports; all others would double the package. */
function removeUnreachableDeclarations() {
  const needed = new Set(entries.map((name) => `dist/${name.replace('.ts', '.d.ts')}`));
  for (const path of needed) {
    const imports = readFileSync(path, 'utf8').matchAll(/(?:from|import\()\s*['"](\.[^'"]+)\.js['"]/g);
    for (const [, to] of imports) needed.add(`${join(dirname(path), to)}.d.ts`.replaceAll('\\', '/'));
  }
  const declared = readdirSync('dist', { recursive: true }).filter((path) => path.endsWith('.d.ts'));
  const paths = declared.map((path) => `dist/${path.replaceAll('\\', '/')}`);
  for (const path of paths) if (!needed.has(path)) rmSync(path);
}

async function bundleForNode(dir, input) {
  const bundle = await rollup({ input, plugins: [typescript], external: isExternal, onwarn });
  await bundle.write({
    dir,
    format: 'es',
    chunkFileNames: '[name]-[hash].js',
    manualChunks: oneFile,
    // Without what these modules import, which others load without them.
    // oxlint-disable-next-line typescript/no-deprecated -- Rollup 5 does this without the option, Rollup 4 does not
    onlyExplicitManualChunks: true,
  });
  await bundle.close();
}

/** The script of each page: `<name>.page.ts`, in any folder. */
function pageScripts() {
  const paths = readdirSync('src', { recursive: true, encoding: 'utf8' });
  return paths.filter((path) => path.endsWith('.page.ts'));
}

/** The program that releases browsers in another process. It needs no other file, and is an argument of Node. */
async function releaseProgram() {
  const { outputFiles } = await esbuild.build({
    entryPoints: ['src/pool/release-process.ts'],
    bundle: true,
    minify: true,
    write: false,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'warning',
  });
  return outputFiles[0].text;
}

/** What loads together is one file: Node needs most of the time of an import for the number of files. */
function oneFile(id, { getModuleInfo }) {
  const root = resolve('src/index.ts');
  if (!getModuleInfo(root)) return undefined;
  // What the root entry loads.
  const found = new Set([root]);
  for (const one of found) for (const to of getModuleInfo(one).importedIds) found.add(to);
  if (found.has(id)) return id === root ? undefined : 'core';
  // The features, which a lease loads.
  return getModuleInfo(id).dynamicImporters.some((from) => /features.[\w-]+.feature\.ts$/.test(from))
    ? 'features'
    : undefined;
}

/** A warning about our own files is an error. */
function onwarn({ code, id = '', ids = [id], message }) {
  if (!ids.every((one) => one.includes('node_modules'))) throw new Error(`${code}: ${message}`);
}

function isExternal(source) {
  return !/^[./]/.test(source) && !(source in BUNDLED);
}
