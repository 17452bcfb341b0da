/** Reads environment variables, each when it is needed. No other module reads any. */
/** A variable with the path of a browser. */
type BrowserVariable = 'CHROME_PATH' | 'FIREFOX_PATH';

export const environment = {
  /** Address of the service, such as `https://pool.example.com/v1`. */
  baseUrl: () => read('BROWSER_POOL_BASE_URL'),
  /** The pools, where no argument or option names one: `NAME`, `SERVICE:NAME` or `local`, with commas between. */
  pool: () => read('BROWSER_POOL'),
  /** Name of the service, such as `browserbase`. */
  service: () => read('BROWSER_POOL_SERVICE'),
  /** Fields of the request that creates a browser of kernel without a pool, as JSON. */
  kernelCreate: () => read('BROWSER_POOL_KERNEL_CREATE'),
  /** The first of these variables that is set, with its value. */
  firstOf: (names: readonly string[]): readonly [name: string, value: string] | undefined => {
    for (const name of names) {
      const value = read(name);
      if (value !== undefined) return [name, value];
    }
    return undefined;
  },
  /** Maximum number of browsers of a local service. */
  localSize: () => read('BROWSER_POOL_LOCAL_SIZE'),
  /** Whether the browsers of a local service open windows. */
  isLocalHeadful: () => read('BROWSER_POOL_LOCAL_HEADFUL') === '1',
  /** Folder of the recordings of a local service. */
  localRecordings: () => read('BROWSER_POOL_LOCAL_RECORDINGS'),
  /** Hosts of this machine's network that leased browsers may reach. */
  exposeNetwork: () => read('BROWSER_POOL_EXPOSE_NETWORK'),
  /** The only hosts that leased browsers may reach. */
  allowedHosts: () => read('BROWSER_POOL_ALLOWED_HOSTS'),
  /** Bearer token of the service. */
  accessToken: () => read('BROWSER_POOL_ACCESS_TOKEN'),
  /** The secret in the address of a proxy, instead of a random one. */
  proxySecret: () => read('BROWSER_POOL_PROXY_SECRET'),
  /** Id of the account at Cloudflare. */
  cloudflareAccount: () => read('CLOUDFLARE_ACCOUNT_ID'),
  /** URL of the Redis that holds the queues, such as `redis://:password@host:6379`. */
  redisUrl: () => read('REDIS_URL'),
  /** Path of the browser for local pools. */
  browserPath: (variable: BrowserVariable) => read(variable),
  /** The variable that names the proxy, with its value. Lower case first, as in curl. */
  proxy: (isSecure: boolean) =>
    environment.firstOf(isSecure ? ['https_proxy', 'HTTPS_PROXY'] : ['http_proxy', 'HTTP_PROXY']),
  /** The hosts that need no proxy. */
  noProxy: () => read('no_proxy') ?? read('NO_PROXY') ?? '',
  /** True in a worker of Playwright Test. */
  isTestWorker: () => read('TEST_WORKER_INDEX') !== undefined,
  /** The number of a worker of Playwright Test or Vitest. */
  testWorker: () => read('TEST_WORKER_INDEX') ?? read('VITEST_POOL_ID'),
  /** True if Playwright is to open its Inspector, as with `npx playwright test --debug`. */
  opensInspector: () => read('PWDEBUG') === '1',
  /** True if Node is to print debug messages. Which ones, `debuglog` of node:util reads. */
  debugs: () => read('NODE_DEBUG') !== undefined,
  /** Identifies the run of a test runner, in the runner and in its workers. */
  testRun: () => read(TEST_RUN),
  /** The processes that this process starts from now on belong to this run. */
  beginTestRun: (id: string): void => void (process.env[TEST_RUN] = id),
  /** The display of this session, of X11 or Wayland. */
  display: () => read('DISPLAY') ?? read('WAYLAND_DISPLAY'),
  /** The folders of programs. */
  programFolders: () => (read('PATH') ?? '').split(process.platform === 'win32' ? ';' : ':').filter(Boolean),
  /** The folders of installed programs on Windows, of the user and of the machine. */
  windowsPrograms: () =>
    ['LOCALAPPDATA', 'PROGRAMFILES', 'PROGRAMFILES(X86)'].flatMap((name) => read(name) ?? []),
  /** What a browser or a helper process needs, without secrets, and without NODE_OPTIONS, whose loaders belong to this program. */
  forHelperProgram: (): NodeJS.ProcessEnv => helperVariables(process.env),
  /**
   * All variables but those with secrets, for a program of the user.
   *
   * @param passed Names of secret variables that the user wants to pass.
   */
  forProgram: (passed: readonly string[] = []): NodeJS.ProcessEnv => programVariables(process.env, passed),
  /** A person uses this machine over SSH. */
  isOverSsh: (): boolean => read('SSH_CONNECTION') !== undefined,
  /**
   * The arguments and variables for a Node process that sends requests for this one: with the certificates and proxies
   * of this process, without its loaders and inspectors. `packages`: further arguments for a program that imports packages.
   */
  forHelper: (): { args: string[]; packages: string[]; env: NodeJS.ProcessEnv } => {
    const options = read('NODE_OPTIONS')?.match(/(?:[^\s"]|"(?:\\.|[^"\\])*")+/g) ?? [];
    const unquoted = options.map((option) => option.replaceAll(/"((?:\\.|[^"\\])*)"/g, '$1'));
    const all = [...unquoted, ...process.execArgv];
    return { args: networkOptions(all), packages: packageLoaders(all), env: environment.forHelperProgram() };
  },
};

/**
 * Node's options for certificates, TLS, proxies and name resolution. The value of some options is the next argument.
 */
const NETWORK_OPTION =
  /^--(no-)?(use-(openssl|bundled|system)-ca|use-env-proxy|tls-|openssl-|(enable|force)-fips|dns-|network-family-)/;

function networkOptions(args: readonly string[]): string[] {
  return args.filter((arg, at) => {
    const previous = at > 0 ? args[at - 1]! : '';
    const isValue = !arg.startsWith('-') && NETWORK_OPTION.test(previous) && !previous.includes('=');
    return isValue || NETWORK_OPTION.test(arg);
  });
}

/** Yarn Plug'n'Play has no node_modules: programs find their packages with these loaders. Their option is before them, or in them. */
const PACKAGE_LOADER = /\.pnp\.(cjs|loader\.mjs)$/;

function packageLoaders(args: readonly string[]): string[] {
  const isLoader = (arg = '') => PACKAGE_LOADER.test(arg);
  const isOption = (arg: string) => arg.startsWith('-') && !arg.includes('=');
  return args.filter((arg, at) => isLoader(arg) || (isOption(arg) && isLoader(args[at + 1])));
}

const TEST_RUN = 'POOLED_BROWSER_TEST_RUN';

function read(name: string): string | undefined {
  return process.env[name] || undefined;
}

/**
 * The variables that the guard, the process of the local browsers, Xvfb and Chromium get, in upper case; `*` stands for any
 * end of a name. No secret belongs here: these processes outlive the program, or run code of web pages.
 */
const HELPER_VARIABLES = Object.values({
  programsAndFiles:
    'PATH HOME USER LOGNAME SHELL PWD TMPDIR TMP TEMP LD_LIBRARY_PATH LD_PRELOAD DYLD_* DENO_DIR',
  languageAndFonts: 'LANG LANGUAGE LC_* TZ TZDIR FONTCONFIG_* __CF_USER_TEXT_ENCODING',
  certificates:
    'NODE_EXTRA_CA_CERTS NODE_USE_SYSTEM_CA NODE_TLS_REJECT_UNAUTHORIZED OPENSSL_CONF SSL_CERT_FILE SSL_CERT_DIR ' +
    'DENO_CERT DENO_TLS_CA_STORE',
  /** Without their passwords. */
  proxies: 'HTTP_PROXY HTTPS_PROXY ALL_PROXY FTP_PROXY NO_PROXY NODE_USE_ENV_PROXY',
  desktop: 'DISPLAY WAYLAND_DISPLAY XAUTHORITY XDG_* DBUS_* DESKTOP_SESSION PULSE_SERVER',
  graphics: 'LIBGL_* MESA_* VK_* GALLIUM_* LIBVA_*',
  browsers: 'CHROME_PATH FIREFOX_PATH CHROME_DEVEL_SANDBOX PLAYWRIGHT_BROWSERS_PATH',
  /** The program of this process may be Electron. */
  electron: 'ELECTRON_RUN_AS_NODE',
  windows:
    'SYSTEMROOT SYSTEMDRIVE WINDIR COMSPEC PATHEXT OS USERNAME USERDOMAIN USERPROFILE HOMEDRIVE HOMEPATH APPDATA ' +
    'LOCALAPPDATA PROGRAMDATA PROGRAMFILES PROGRAMFILES(X86) PROGRAMW6432 COMMONPROGRAMFILES ' +
    'NUMBER_OF_PROCESSORS PROCESSOR_*',
}).flatMap((names) => names.split(' '));

/** The variables with secrets of this library and of the services, which `exec` gives to no program. */
export const SECRET_VARIABLES: readonly string[] = [
  'BROWSER_POOL_ACCESS_TOKEN',
  'BROWSER_POOL_PROXY_SECRET',
  'ANCHORBROWSER_API_KEY',
  'ANCHOR_API_KEY',
  'BROWSERBASE_API_KEY',
  'BROWSERLESS_API_KEY',
  'BROWSERLESS_API_TOKEN',
  'BROWSERLESS_TOKEN',
  'BROWSER_USE_API_KEY',
  'CLOUDFLARE_API_TOKEN',
  'HYPERBROWSER_API_KEY',
  'KERNEL_API_KEY',
  'STEEL_API_KEY',
];

/** The variables with a URL. With a password, or with a query, which may hold a token, the URL is a secret, too. */
export const SECRET_URLS: readonly string[] = ['BROWSER_POOL_BASE_URL', 'REDIS_URL'];

function helperVariables(all: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const [exact, beginnings] = [new Set<string>(), [] as string[]];
  for (const name of HELPER_VARIABLES)
    if (name.endsWith('*')) beginnings.push(name.slice(0, -1));
    else exact.add(name);
  const isNeeded = (name: string) =>
    exact.has(name) || beginnings.some((beginning) => name.startsWith(beginning));
  return Object.fromEntries(
    Object.entries(all)
      .filter(([name]) => isNeeded(name.toUpperCase()))
      .map(([name, value]) => [
        name,
        /_proxy$/i.test(name) ? value?.replace(/^([a-z]+:\/\/)?[^/]*@/i, '$1') : value,
      ]),
  );
}

function programVariables(all: NodeJS.ProcessEnv, passed: readonly string[]): NodeJS.ProcessEnv {
  const isSecret = (name: string, value = '') =>
    SECRET_VARIABLES.includes(name) || (SECRET_URLS.includes(name) && /:\/\/[^/]*@|\?/.test(value));
  return Object.fromEntries(
    Object.entries(all).filter(
      ([name, value]) => passed.includes(name) || !isSecret(name.toUpperCase(), value),
    ),
  );
}
