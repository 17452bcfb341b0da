import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);
const require = createRequire(import.meta.url);

/** Packs dist as it is: `npm test` has just built it, and a second build would pull it away from other tests. */
export async function pack(folder: string): Promise<string> {
  const parameters = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder];
  const { stdout } = await execute('npm', parameters, { env: outsideNpm() });
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
  return join(folder, filename);
}

/** An empty project with the packed package and the given libraries, and none of this repository's packages in reach. */
export class Consumer {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async install(folder: string, tarball: string, libraries: readonly string[]): Promise<Consumer> {
    await mkdir(folder);
    await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
    const wanted = await Promise.all(libraries.map(withVersion));
    const quiet = ['--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
    await execute('npm', ['install', ...quiet, tarball, ...wanted], { cwd: folder, env: outsideNpm() });
    return new Consumer(folder);
  }

  async write(name: string, text: string): Promise<void> {
    await writeFile(join(this.folder, name), text);
  }

  /** Runs a program of that project; `name` says by its ending whether it is ESM or CommonJS. Resolves to its output. */
  async run(name: string, text: string, flags: readonly string[] = []): Promise<string> {
    await this.write(name, text);
    const { stdout } = await execute(process.execPath, [...flags, name], { cwd: this.folder });
    return stdout.trim();
  }

  /** Bytes on disk of all packages except these, in blocks of 4 KiB as `du` counts them. */
  async installedSize(except: readonly string[]): Promise<number> {
    const modules = join(this.folder, 'node_modules');
    const files = await readdir(modules, { recursive: true, withFileTypes: true });
    const folders = except.map((name) => join(modules, name));
    const counted = files.filter((file) => {
      const path = join(file.parentPath, file.name);
      return !folders.some((folder) => path.startsWith(folder));
    });
    const sizes = await Promise.all(counted.map((file) => stat(join(file.parentPath, file.name))));
    return sizes.reduce((sum, { size }) => sum + Math.ceil(size / 4096) * 4096, 0);
  }

  /** Packages that load with these imports, each once. */
  async loadedBy(imports: string): Promise<string[]> {
    const loaded = join(this.folder, 'loaded.txt');
    await this.write('loaded.txt', '');
    await this.write('hooks.mjs', HOOKS.replace('FILE', JSON.stringify(loaded)));
    const register = "import { register } from 'node:module'; register('./hooks.mjs', import.meta.url);";
    await this.write('record.mjs', register);
    await this.run('imports.mjs', imports, ['--import', './record.mjs']);
    const urls = (await readFile(loaded, 'utf8')).split('\n');
    return [...new Set(urls.flatMap((url) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? []))];
  }

  /** The compiler's complaints about `consumer.ts`, or about what it takes from the package. */
  async compile(options: object): Promise<string[]> {
    const tsconfig = { compilerOptions: { ...STRICT, ...options }, files: ['consumer.ts'] };
    await this.write('tsconfig.json', JSON.stringify(tsconfig));
    const tsc = join(require.resolve('@typescript/native/package.json'), '../bin/tsc');
    const run = execute(process.execPath, [tsc, '-p', '.', '--pretty', 'false'], { cwd: this.folder });
    const output = await run.then(
      ({ stdout }) => stdout,
      (error: { stdout: string }) => error.stdout,
    );
    const complaints = output.split('\n').filter((line) => /\berror TS/.test(line));
    // What other packages' types have to complain of each other is not ours.
    return complaints.filter((line) => !/^node_modules\/(?!pooled-browser\/)/.test(line));
  }
}

/** `skipLibCheck` off: our own declarations must hold without the packages that a consumer does not have. */
const STRICT = {
  target: 'es2022',
  lib: ['es2023', 'esnext.disposable', 'dom'],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: false,
  noEmit: true,
  types: [],
};

const HOOKS = `
import { appendFileSync } from 'node:fs';
export async function load(url, context, next) {
  appendFileSync(FILE, url + '\\n');
  return next(url, context);
}
`;

/** A library without a version is installed in the one that this repository has. */
async function withVersion(library: string): Promise<string> {
  if (library.includes('@', 1)) return library;
  const manifest = await readFile(`node_modules/${library}/package.json`, 'utf8');
  return `${library}@${(JSON.parse(manifest) as { version: string }).version}`;
}

/** npm hands its scripts the project that it runs them for; another npm would take that for its own. */
export function outsideNpm(): NodeJS.ProcessEnv {
  const own = /^npm_(package|lifecycle)_|^npm_config_local_prefix$/i;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !own.test(name)));
}
