import type { IncomingMessage } from 'node:http';
import { openForOne } from '../../drivers/loopback-endpoint.js';
import { channelOf, join, type Channel } from '../../drivers/relay.js';
import type { ClientSocket } from '../../drivers/socket.js';
import { createTemporaryFolder } from '../../shared/connection-folder.js';
import { isRecord, parseJson } from '../../shared/json.js';
import { isOlder } from '../../shared/library-version.js';
import type { EndpointFault, OpenRouteOptions, ProxyEndpoint, ProxyRoute } from '../proxy-endpoint.js';
import { MessageGuard } from './message-guard.js';
import { findPlaywright, playwrightPackage, type PlaywrightCopy } from './playwright-copy.js';
import { ServerSocket } from './server-socket.js';
import { ServerThread } from './server-thread.js';

/** The first version with `browser.bind`. */
const OLDEST = '1.59.0';

/** As a client has sent them. */
export type LaunchOptions = Readonly<Record<string, unknown>>;

/** Playwright's own protocol, for `chromium.connect(url)`. The server side is the playwright-core of the current folder. */
export class PlaywrightEndpoint implements ProxyEndpoint {
  readonly path = 'playwright';
  readonly #copy: PlaywrightCopy | undefined = findPlaywright();
  readonly #onLaunchOptions: (options: LaunchOptions) => void;

  /** @param onLaunchOptions Called with the options with which a runner of tests would launch a browser. They have no effect. */
  constructor(onLaunchOptions: (options: LaunchOptions) => void = () => {}) {
    this.#onLaunchOptions = onLaunchOptions;
  }

  fault(hasSecret: boolean): EndpointFault | undefined {
    if (!hasSecret) return { status: 403, reason: NEEDS_SECRET };
    if (!this.#copy)
      return {
        status: 501,
        reason: `No playwright-core was found from the current folder. Start pooled-browser in a folder of the project that has it, or install it: ${installCommand()}`,
      };
    const { version } = this.#copy;
    if (!isOlder(version, OLDEST)) return undefined;
    const reason = `The playwright-core of the current folder is ${version}, and Playwright's own protocol needs ${OLDEST} or newer. Install it: ${installCommand()}`;
    return { status: 501, reason };
  }

  refuses(request: IncomingMessage): EndpointFault | undefined {
    const asked = (name: string) => valueOf(request, name);
    const browserName = asked('x-playwright-browser') ?? asked('browser') ?? 'chromium';
    if (browserName !== 'chromium')
      return {
        status: 400,
        reason: `A pool leases Chromium, and the client asks for ${JSON.stringify(browserName.slice(0, 50))}. Launch that browser instead, or run only projects of Chromium: npx playwright test --project=NAME`,
      };
    if (asked('x-playwright-proxy') !== undefined) return { status: 400, reason: NO_EXPOSE };
    const [, client] = /^Playwright\/(\d+\.\d+[\w.-]*)/.exec(request.headers['user-agent'] ?? '') ?? [];
    const launchOptions = asked('x-playwright-launch-options');
    if (launchOptions !== undefined) this.#onLaunchOptions(readRecord(launchOptions));
    const { version } = this.#copy!;
    if (client === undefined || minorOf(client) === minorOf(version)) return undefined;
    return {
      status: 428,
      reason:
        `The client is Playwright ${client}, and the server side is Playwright ${version}, of the folder in which the proxy was started. ` +
        'Both must have the same version: install the same one in both folders.',
    };
  }

  open(browser: ClientSocket, how: OpenRouteOptions): Promise<ProxyRoute> {
    return openPlaywrightRoute(this.#copy!.resolve(), browser, how);
  }
}

function installCommand(): string {
  return `npm install ${playwrightPackage()}@latest`;
}

const NEEDS_SECRET =
  'This address needs a secret: start the proxy without --no-secret, or without secret: false.';
const NO_EXPOSE =
  'The client has the option exposeNetwork, which has no effect here. Set it on this side: --expose-network, or the option exposeNetwork of serveProxy.';

/** A header of a request, or the parameter of its query. */
function valueOf({ headers, url = '/' }: IncomingMessage, name: string): string | undefined {
  const header = headers[name];
  const value = Array.isArray(header) ? header[0] : header;
  return value || new URL(url, 'http://localhost').searchParams.get(name) || undefined;
}

/** What a client sends may be no JSON. */
function readRecord(text: string): LaunchOptions {
  try {
    const value = parseJson(text);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

/** The versions of a protocol differ by major and minor. */
function minorOf(version: string): string {
  return version.split('.').slice(0, 2).join('.');
}

/** Connects Playwright to a browser, and a client's messages to that Playwright. */
async function openPlaywrightRoute(
  playwright: string,
  socket: ClientSocket,
  { isNamed, allowed, signal }: OpenRouteOptions,
): Promise<ProxyRoute> {
  const [browserUrl, { path: folder }] = await Promise.all([
    exposeCdp(socket),
    createTemporaryFolder(socket),
  ]);
  const how = { playwright, browserUrl, folder, copiesUploads: !isNamed, signal };
  const thread = await ServerThread.start(how);
  try {
    const upstream = await ServerSocket.open(thread.url, socket, signal);
    const guard = new MessageGuard({ hidesOwnContext: !isNamed, allowed });
    return {
      upstream,
      channel: channelTo(upstream, guard),
      close: async () => {
        upstream.cut();
        await thread.close();
      },
    };
  } catch (error) {
    await thread.close();
    throw error;
  }
}

function channelTo(upstream: ServerSocket, guard: MessageGuard): Channel {
  return (toClient) => {
    upstream.onText = (text) => {
      const shown = guard.fromServer(text);
      if (shown !== undefined) toClient(shown, false);
    };
    return (data) => {
      const { pass, answer } = guard.fromClient(String(data));
      if (pass !== undefined) upstream.send(pass);
      if (answer !== undefined) toClient(answer, false);
    };
  };
}

/** Returns a URL for one connection to the browser. Its end leaves the socket open: the browser must still be cleaned. */
async function exposeCdp(socket: ClientSocket): Promise<string> {
  const { url, close } = await openForOne((client) => {
    join(
      client,
      socket,
      channelOf(socket, 'cdp', () => client.close()),
    );
    void socket.detached.then(() => client.terminate());
  });
  void socket.detached.then(close);
  return url;
}
