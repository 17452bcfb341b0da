import { readFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { faultAnswer, notFound, toFault, type Answer } from '../http/answer.js';
import { methodOf, urlOf } from '../http/request.js';
import type { PoolSet } from '../pool/pool-set.js';
import { DASHBOARD_STYLE, dashboardPage } from './dashboard-page.js';
import { LIVE_STYLE, livePage } from './live-page.js';
import { BASE_STYLE, faultPage, LOGO_SVG, PAGE_HEADERS, textAnswer, type PageCall } from './page.js';
import { REPLAY_STYLE, replayFacts, replayPage, replayVideo } from './replay-page.js';

type PageRoute = (call: PageCall) => Answer | Promise<Answer>;

/** All pages are for GET, and none takes the access token. */
const ROUTES: readonly (readonly [path: RegExp, route: PageRoute])[] = [
  [/^\/$/, dashboardPage],
  [/^\/browsers\/([^/]+)\/live$/, livePage],
  [/^\/browsers\/([^/]+)\/replays\/view$/, replayPage],
  [/^\/browsers\/([^/]+)\/replays\/facts$/, replayFacts],
  [/^\/browsers\/([^/]+)\/replays\/video$/, replayVideo],
  [/^\/pages\/([a-z-]+\.[a-z]+)$/, asset],
];

/** Answers a request for a page or for its content. @returns undefined for other requests. */
export async function callPage(pools: PoolSet, request: IncomingMessage): Promise<Answer | undefined> {
  const { pathname, searchParams: query } = urlOf(request);
  const found = ROUTES.find(([path]) => methodOf(request) === 'GET' && path.test(pathname));
  if (!found) return undefined;
  const [path, route] = found;
  const answer = await callRoute(route, { pools, request, query, id: path.exec(pathname)![1] ?? '' });
  return { ...answer, headers: { ...PAGE_HEADERS, ...answer.headers } };
}

async function callRoute(route: PageRoute, call: PageCall): Promise<Answer> {
  try {
    return await route(call);
  } catch (error) {
    const fault = toFault(error);
    const isPerson = call.request.headers.accept?.includes('text/html');
    return isPerson ? faultPage(fault) : faultAnswer(fault);
  }
}

const ASSETS: ReadonlyMap<string, readonly [type: string, text: string]> = new Map([
  ['icon.svg', ['image/svg+xml', LOGO_SVG]],
  ['base.css', ['text/css', BASE_STYLE]],
  ['replay.css', ['text/css', REPLAY_STYLE]],
  ['live.css', ['text/css', LIVE_STYLE]],
  ['dashboard.css', ['text/css', DASHBOARD_STYLE]],
]);

/** GET /pages/{file}: a style or a script. They contain nothing private and need no jwt. */
async function asset({ id: file }: PageCall): Promise<Answer> {
  const [type, text] = ASSETS.get(file) ?? ['text/javascript', await readScript(file)];
  return textAnswer(type, text);
}

/** Reads a script from dist, also when this file runs from its source: browsers need the compiled script. */
async function readScript(file: string): Promise<string> {
  if (!file.endsWith('.js')) throw notFound('There is no such file.');
  const root = dirname(createRequire(import.meta.url).resolve('pooled-browser/package.json'));
  return await readFile(join(root, 'dist/local/pages/browser', file), 'utf8').catch(() => {
    throw notFound('There is no such script. If you run from source, build the package first.');
  });
}
