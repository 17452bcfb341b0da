import { delimiter } from 'node:path';

/** The one place that reads environment variables, and only when asked. */
export const environment = {
  /** Address of the service, such as `https://pool.example.com/v1`. */
  baseUrl: () => read('BROWSER_POOL_BASE_URL'),
  /** Bearer token of the service. */
  accessToken: () => read('BROWSER_POOL_ACCESS_TOKEN'),
  /** Path of the Chrome or Chromium that a local pool is to use. */
  chromePath: () => read('CHROME_PATH'),
  /** Names of the variables that ask for an HTTP proxy. */
  proxyVariables: () => PROXY_VARIABLES.filter((name) => read(name) !== undefined),
  /** The screen of this session, X11's or Wayland's. */
  display: () => read('DISPLAY') ?? read('WAYLAND_DISPLAY'),
  /** The folders in which programs are looked for. */
  programFolders: () => (read('PATH') ?? '').split(delimiter).filter(Boolean),
  /** The whole of it, for a process of ours, without the loaders that this one may have been started with. */
  forChild: (): NodeJS.ProcessEnv => {
    const { NODE_OPTIONS: _loaders, ...rest } = process.env;
    return rest;
  },
};

const PROXY_VARIABLES = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'all_proxy'];

function read(name: string): string | undefined {
  return process.env[name] || undefined;
}
