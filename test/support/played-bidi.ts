import type { WebSocket } from 'ws';
import type { PlayedBrowser } from './played-browser.js';

/** A command of WebDriver BiDi. */
export interface BidiCommand {
  readonly id: number;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** The answer to a command in the place of the usual one: a result, `'none'`, or undefined for the usual one. */
export type BidiAnswer = (command: BidiCommand, client: WebSocket) => object | 'none' | undefined;

const DESCRIBED = {
  browserName: 'firefox',
  browserVersion: '1',
  userAgent: 'Firefox/1',
  platformName: '',
  acceptInsecureCerts: false,
  setWindowRect: false,
};

/** Answers as a browser with WebDriver BiDi and without CDP, such as Firefox, which has one blank page in the beginning. */
export function playBidi(browser: PlayedBrowser, answer: BidiAnswer = () => undefined): void {
  const page = (context: string, userContext: string) => ({
    context,
    userContext,
    url: 'about:blank',
    children: [],
    parent: null,
    clientWindow: `window of ${context}`,
    originalOpener: null,
  });
  let number = 0;
  let users = ['default'];
  let pages = [page('first', 'default')];
  browser.onText = (text, client) => {
    const command = JSON.parse(text) as BidiCommand;
    const { id, method, params } = command;
    const tell = (name: string, what: object) =>
      client.send(JSON.stringify({ type: 'event', method: name, params: what }));
    const usual: Record<string, () => object> = {
      'session.new': () => ({ sessionId: 'session', capabilities: DESCRIBED }),
      'browser.getUserContexts': () => ({ userContexts: users.map((userContext) => ({ userContext })) }),
      'browser.createUserContext': () => {
        users.push(`user ${++number}`);
        return { userContext: users.at(-1) };
      },
      'browser.removeUserContext': () => {
        users = users.filter((one) => one !== params['userContext']);
        pages = pages.filter((one) => users.includes(one.userContext));
        return {};
      },
      'browser.getClientWindows': () => ({ clientWindows: pages }),
      'browsingContext.getTree': () => ({ contexts: pages }),
      'browsingContext.create': () => {
        const opened = page(`page ${++number}`, String(params['userContext'] ?? 'default'));
        pages.push(opened);
        tell('browsingContext.contextCreated', opened);
        return opened;
      },
      'browsingContext.close': () => {
        const closed = pages.find(({ context }) => context === params['context']);
        pages = pages.filter((one) => one !== closed);
        if (closed) tell('browsingContext.contextDestroyed', closed);
        return {};
      },
    };
    if (method.startsWith('goog:'))
      return client.send(JSON.stringify({ type: 'error', id, error: 'unknown command', message: 'no' }));
    const result = answer(command, client) ?? usual[method]?.() ?? {};
    if (result !== 'none') client.send(JSON.stringify({ type: 'success', id, result }));
  };
}
