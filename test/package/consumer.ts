import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);
const require = createRequire(import.meta.url);

/** The words of npm that install packages. The lists of an old cache may lack a release of today. */
export const NPM_INSTALL = ['install', '--no-audit', '--no-fund', '--prefer-online', '--loglevel=error'];

/** Packs dist without a build: `npm test` has just built it, and other tests use it. */
export async function pack(folder: string): Promise<string> {
  const parameters = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder];
  const { stdout } = await execute('npm', parameters, { env: outsideNpm() });
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
  return join(folder, filename);
}

/** An empty project with the packed package and the given libraries, outside of this repository's packages. */
export class Consumer {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async install(folder: string, tarball: string, libraries: readonly string[]): Promise<Consumer> {
    await mkdir(folder);
    await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
    const wanted = await Promise.all(libraries.map(withVersion));
    const words = [...NPM_INSTALL, '--ignore-scripts', tarball, ...wanted];
    await execute('npm', words, { cwd: folder, env: outsideNpm() });
    return new Consumer(folder);
  }

  /** A copy of this project, in which the given libraries are those of this repository: npm needs long to install many. */
  async with(folder: string, libraries: readonly string[]): Promise<Consumer> {
    await cp(this.folder, folder, { recursive: true });
    for (const library of libraries) {
      const place = join(folder, 'node_modules', library);
      await rm(place, { recursive: true, force: true });
      await mkdir(dirname(place), { recursive: true });
      await symlink(resolve('node_modules', library), place);
    }
    return new Consumer(folder);
  }

  async write(name: string, text: string): Promise<void> {
    await writeFile(join(this.folder, name), text);
  }

  /** Runs a program in that project. The extension of `name` selects ESM or CommonJS. Resolves to its output. */
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

  /** Returns the packages that load with these imports, each once. */
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

  /** Returns the compiler's errors in `consumer.ts` and in the package. */
  async compile(options: object): Promise<string[]> {
    const tsconfig = { compilerOptions: { ...STRICT, ...options }, files: ['consumer.ts'] };
    await this.write('tsconfig.json', JSON.stringify(tsconfig));
    const complaints = await errorsOf(this.folder);
    // Errors in the types of other packages do not count.
    return complaints.filter((line) => /^(consumer\.ts|node_modules\/pooled-browser\/)/.test(line));
  }
}

/** Returns the compiler's errors in the project of a folder. */
export async function errorsOf(folder: string): Promise<string[]> {
  const tsc = join(require.resolve('@typescript/native/package.json'), '../bin/tsc');
  const run = execute(process.execPath, [tsc, '-p', '.', '--pretty', 'false'], { cwd: folder });
  const output = await run.then(
    ({ stdout }) => stdout,
    (error: { stdout: string }) => error.stdout,
  );
  return output.split('\n').filter((line) => /\berror TS/.test(line));
}

/** `skipLibCheck` is off: our declarations must compile without packages that a consumer lacks. */
export const STRICT = {
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

/** Adds the version of this repository to a library without a version. */
async function withVersion(library: string): Promise<string> {
  if (library.includes('@', 1)) return library;
  const manifest = await readFile(`node_modules/${library}/package.json`, 'utf8');
  return `${library}@${(JSON.parse(manifest) as { version: string }).version}`;
}

/** Removes the variables by which npm tells its scripts their project: a nested npm would use that project. */
export function outsideNpm(): NodeJS.ProcessEnv {
  const own = /^npm_(package|lifecycle)_|^npm_config_local_prefix$/i;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !own.test(name)));
}
