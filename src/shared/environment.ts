/** Reads environment variables, each when it is needed. No other module reads any. */
export const environment = {
  /** Address of the service, such as `https://pool.example.com/v1`. */
  baseUrl: () => read('BROWSER_POOL_BASE_URL'),
  /** Name of the service, such as `browserbase`. */
  service: () => read('BROWSER_POOL_SERVICE'),
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
  /** Folder of the recordings of a local service. */
  localRecordings: () => read('BROWSER_POOL_LOCAL_RECORDINGS'),
  /** Bearer token of the service. */
  accessToken: () => read('BROWSER_POOL_ACCESS_TOKEN'),
  /** Id of the account at Cloudflare. */
  cloudflareAccount: () => read('CLOUDFLARE_ACCOUNT_ID'),
  /** URL of the Redis that holds the queues, such as `redis://:password@host:6379`. */
  redisUrl: () => read('REDIS_URL'),
  /** Path of the Chrome or Chromium for local pools. */
  chromePath: () => read('CHROME_PATH'),
  /** The variable that names the proxy, with its value. Lower case first, as in curl. */
  proxy: (isSecure: boolean) =>
    environment.firstOf(isSecure ? ['https_proxy', 'HTTPS_PROXY'] : ['http_proxy', 'HTTP_PROXY']),
  /** The hosts that need no proxy. */
  noProxy: () => read('no_proxy') ?? read('NO_PROXY') ?? '',
  /** The display of this session, of X11 or Wayland. */
  display: () => read('DISPLAY') ?? read('WAYLAND_DISPLAY'),
  /** The folders of programs. */
  programFolders: () => (read('PATH') ?? '').split(process.platform === 'win32' ? ';' : ':').filter(Boolean),
  /** The folders of installed programs on Windows, of the user and of the machine. */
  windowsPrograms: () =>
    ['LOCALAPPDATA', 'PROGRAMFILES', 'PROGRAMFILES(X86)'].flatMap((name) => read(name) ?? []),
  /** All variables, for a program that is not Node. */
  forChild: (): NodeJS.ProcessEnv => {
    const { NODE_OPTIONS: _options, ...rest } = process.env;
    return rest;
  },
  /**
   * The arguments and variables for a Node process that sends requests for this one: with the certificates and proxies
   * of this process, without its loaders and inspectors.
   */
  forHelper: (): { args: string[]; env: NodeJS.ProcessEnv } => {
    const options = read('NODE_OPTIONS')?.match(/(?:[^\s"]|"(?:\\.|[^"\\])*")+/g) ?? [];
    const unquoted = options.map((option) => option.replaceAll(/"((?:\\.|[^"\\])*)"/g, '$1'));
    return { args: networkOptions([...unquoted, ...process.execArgv]), env: environment.forChild() };
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

function read(name: string): string | undefined {
  return process.env[name] || undefined;
}
