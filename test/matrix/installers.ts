import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { NPM_INSTALL, outsideNpm } from '../package/consumer.js';
import { run } from './run.js';

/** The programs that install packages, beside those that are runtimes. npm installs them. */
const TOOLS = {
  pnpm: 'pnpm@12.4.2',
  yarn: '@yarnpkg/cli-dist@4',
} as const;

/** Where a package manager puts the packages. */
export const INSTALLERS = ['npm', 'pnpm', 'yarn', "yarn Plug'n'Play", 'bun'] as const;
export type Installer = (typeof INSTALLERS)[number];

/** Runtimes and package managers, each installed when it is first needed. */
export class Tools {
  readonly #folder: string;
  readonly #installed = new Map<string, Promise<string>>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Path of a runtime, such as `Node 22`, `Bun` or `Deno 2.9.6`, with its version. */
  async runtime(wanted: string): Promise<{ name: string; version: string; path: string }> {
    const [name, release = 'latest'] = wanted.split(' ') as [string, string?];
    const path = await this.#pathOf(name, release);
    const { output } = await run([path, '--version']);
    return { name, version: /\d+\.\d+\.\d+/.exec(output)![0], path };
  }

  async #pathOf(name: string, release: string): Promise<string> {
    if (release === 'current') return process.execPath;
    const program = name.toLowerCase();
    const home = await this.#home(`${program}-${release}`, `${program}@${release}`);
    if (name === 'Bun') return join(home, 'bun/bin/bun.exe');
    if (name === 'Node') return join(home, '.bin/node');
    // The package has a launcher, which asks for its program.
    const { output } = await run([join(home, '.bin/deno'), 'eval', 'console.log(Deno.execPath())']);
    return output.trim();
  }

  /** Installs packages in an empty project, as a user of this package manager does. */
  async install(installer: Installer, folder: string, packages: readonly string[]): Promise<void> {
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
    const registry = await registryOf(folder);
    const env = { ...outsideNpm(), CI: '', YARN_ENABLE_TELEMETRY: '0', ADBLOCK: '1' };
    const { command, settings = {} } = await this.#commandOf(installer, registry, packages);
    for (const [name, text] of Object.entries(settings)) await writeFile(join(folder, name), text);
    const { code, output } = await run(command, { cwd: folder, env, timeout: 300_000 });
    if (code !== 0) throw new Error(`${installer} could not install ${packages.join(' ')}:\n${output}`);
  }

  async #commandOf(
    installer: Installer,
    registry: string,
    packages: readonly string[],
  ): Promise<{ command: string[]; settings?: Record<string, string> }> {
    if (installer === 'npm') {
      return { command: ['npm', ...NPM_INSTALL, '--ignore-scripts', ...packages] };
    }
    // They need a newer Node than the oldest that this package supports.
    const { path: node } = await this.runtime('Node 24');
    if (installer === 'pnpm') {
      const pnpm = join(await this.#home('pnpm', TOOLS.pnpm), 'pnpm/bin/pnpm.mjs');
      const store = ['--store-dir', join(this.#folder, 'pnpm-store'), '--registry', registry];
      return { command: [node, pnpm, 'add', '--ignore-scripts', ...store, ...packages] };
    }
    if (installer === 'bun') {
      const { path } = await this.runtime('Bun');
      const cache = `[install]\nregistry = "${registry}"\ncache = "${join(this.#folder, 'bun-cache')}"\n`;
      return {
        command: [path, 'add', '--ignore-scripts', ...packages],
        settings: { 'bunfig.toml': cache },
      };
    }
    const yarn = join(await this.#home('yarn', TOOLS.yarn), '@yarnpkg/cli-dist/bin/yarn.js');
    const yarnrc = {
      nodeLinker: installer === 'yarn' ? 'node-modules' : 'pnp',
      npmRegistryServer: registry,
      globalFolder: join(this.#folder, 'yarn'),
      enableScripts: false,
      httpTimeout: 120_000,
      ...(process.env['NODE_EXTRA_CA_CERTS'] && { httpsCaFilePath: process.env['NODE_EXTRA_CA_CERTS'] }),
    };
    const lines = Object.entries(yarnrc).map(([name, value]) => `${name}: ${JSON.stringify(value)}\n`);
    // Yarn wants a name for a file.
    const named = packages.map((one) => (one.endsWith('.tgz') ? `pooled-browser@file:${one}` : one));
    return {
      command: [node, yarn, 'add', ...named],
      settings: { '.yarnrc.yml': lines.join(''), 'yarn.lock': '' },
    };
  }

  async #home(name: string, wanted: string): Promise<string> {
    const home = join(this.#folder, name);
    const install = async () => {
      await mkdir(home, { recursive: true });
      // The packages of the runtimes copy their program in a script.
      const command = ['npm', ...NPM_INSTALL, '--prefix', home, wanted];
      const { code, output } = await run(command, { env: outsideNpm(), timeout: 300_000 });
      if (code !== 0) throw new Error(`${wanted} could not be installed:\n${output}`);
      return join(home, 'node_modules');
    };
    const installed = this.#installed.get(name) ?? install();
    this.#installed.set(name, installed);
    return installed;
  }
}

async function registryOf(cwd: string): Promise<string> {
  const { output } = await run(['npm', 'config', 'get', 'registry'], { cwd, env: outsideNpm() });
  return output.trim();
}

/** The variables with which `yarn node` finds the packages of a project of Plug'n'Play. */
export function variablesOf(installer: Installer, folder: string): NodeJS.ProcessEnv {
  if (installer !== "yarn Plug'n'Play") return {};
  const [require, loader] = [join(folder, '.pnp.cjs'), join(folder, '.pnp.loader.mjs')];
  return { NODE_OPTIONS: `--require ${require} --experimental-loader ${loader}` };
}
