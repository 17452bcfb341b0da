import { CdpClient, type Target } from '../wire/cdp-client.js';
import type { CdpPort } from '../wire/client.js';
import { BrowserFault } from '../wire/message.js';
import { Refusal } from '../net/loopback-server.js';

/** A request to a debugging port, such as `/json/version`. */
interface DebuggingRequest {
  readonly method: string;
  /** The part of the path after `/json`. */
  readonly json: string;
  /** The query, without its question mark. */
  readonly query: string;
  /** The WebSocket URL of the browser. */
  readonly address: string;
}

/** The response to such a request: JSON, or text. */
export type DebuggingAnswer = { readonly json: unknown } | { readonly text: string };

const COMMAND = /^\/(new|activate|close)(?:\/([\w-]+))?$/;

/**
 * Refuses a method that Chromium does not allow there either: each page can send GET without being asked.
 *
 * @throws Refusal
 */
export function expectMethod({ method, json }: Pick<DebuggingRequest, 'method' | 'json'>): void {
  const command = COMMAND.exec(json)?.[1];
  const allowed = allowedFor(command);
  if (!allowed.includes(method)) throw new Refusal(405, `This path allows ${allowed.join(' and ')}.`);
}

function allowedFor(command: string | undefined): readonly string[] {
  if (command === undefined) return ['GET', 'HEAD'];
  return command === 'new' ? ['PUT'] : ['GET'];
}

/** Answers as Chromium does, with what the browser itself says. @throws Refusal */
export async function askBrowser(socket: CdpPort, request: DebuggingRequest): Promise<DebuggingAnswer> {
  const cdp = new CdpClient(socket);
  const { json, query, address } = request;
  if (json === '/version') return { json: await versionOf(cdp, address) };
  if (json === '' || json === '/list')
    return { json: (await cdp.targets()).map((target) => describeTarget(target, address)) };
  const [, command, id = ''] = COMMAND.exec(json)!;
  if (command === 'new') return { json: describeTarget(await openTarget(cdp, query), address) };
  if (!(await cdp.targets()).some(({ targetId }) => targetId === id))
    throw new Refusal(404, `No such target id: ${id}`);
  const isClosing = command === 'close';
  await cdp.send(isClosing ? 'Target.closeTarget' : 'Target.activateTarget', { targetId: id });
  return { text: isClosing ? 'Target is closing' : 'Target activated' };
}

async function versionOf(cdp: CdpClient, address: string) {
  const { product, userAgent, ...version } = await cdp.send('Browser.getVersion');
  const webKit = /AppleWebKit\/([\d.]+)/.exec(String(userAgent))?.[1] ?? '537.36';
  return {
    // Clients compare the name, and the headless shell has another one.
    Browser: String(product).replace(/^Headless/, ''),
    'Protocol-Version': version['protocolVersion'],
    'User-Agent': userAgent,
    'V8-Version': version['jsVersion'],
    'WebKit-Version': `${webKit} (${String(version['revision'])})`,
    webSocketDebuggerUrl: address,
  };
}

async function openTarget(cdp: CdpClient, query: string): Promise<Target> {
  const url = query === '' ? 'about:blank' : decoded(query);
  const { targetId } = await cdp.send('Target.createTarget', { url }).catch((error: unknown) => {
    throw error instanceof BrowserFault ? new Refusal(500, error.message) : error;
  });
  const target = (await cdp.targets()).find((one) => one.targetId === targetId);
  return target ?? { targetId, type: 'page', title: '', url };
}

function decoded(query: string): string {
  try {
    return decodeURIComponent(query);
  } catch {
    throw new Refusal(400, 'The URL after the question mark is not encoded correctly.');
  }
}

function describeTarget({ targetId: id, type, title = '', url }: Target, address: string) {
  return { description: '', id, title, type, url, webSocketDebuggerUrl: `${address}/devtools/page/${id}` };
}
