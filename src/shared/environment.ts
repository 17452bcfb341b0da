import { delimiter } from 'node:path';

/** Reads environment variables, each when it is needed. No other module reads any. */
export const environment = {
  /** Address of the service, such as `https://pool.example.com/v1`. */
  baseUrl: () => read('BROWSER_POOL_BASE_URL'),
  /** Bearer token of the service. */
  accessToken: () => read('BROWSER_POOL_ACCESS_TOKEN'),
  /** Path of the Chrome or Chromium for local pools. */
  chromePath: () => read('CHROME_PATH'),
  /** Names of the variables that request an HTTP proxy. */
  proxyVariables: () => PROXY_VARIABLES.filter((name) => read(name) !== undefined),
  /** The display of this session, of X11 or Wayland. */
  display: () => read('DISPLAY') ?? read('WAYLAND_DISPLAY'),
  /** The folders of programs. */
  programFolders: () => (read('PATH') ?? '').split(delimiter).filter(Boolean),
  /** All variables for a helper process, without the loaders of this process. */
  forChild: (): NodeJS.ProcessEnv => {
    const { NODE_OPTIONS: _loaders, ...rest } = process.env;
    return rest;
  },
};

const PROXY_VARIABLES = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'all_proxy'];

function read(name: string): string | undefined {
  return process.env[name] || undefined;
}
