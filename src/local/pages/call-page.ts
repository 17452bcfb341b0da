import type { IncomingMessage } from 'node:http';
import { destroyBrowser, releaseLease, thumbnail } from '../dashboard/dashboard-routes.js';
import type { ShownPages } from '../dashboard/shown-pages.js';
import { faultAnswer, notFound, toFault, type Answer } from '../http/answer.js';
import { methodOf, urlOf } from '../http/request.js';
import type { PoolSet } from '../pool/pool-set.js';
import { DASHBOARD_STYLE, dashboardPage } from './dashboard-page.js';
import { LIVE_STYLE, liveFacts, livePage } from './live-page.js';
import {
  BASE_STYLE,
  faultPage,
  LOGO_SVG,
  PAGE_HEADERS,
  readScript,
  textAnswer,
  type PageCall,
} from './page.js';
import { REPLAY_STYLE, replayFacts, replayPage, replayPoster, replayVideo } from './replay-page.js';

/** A request for a page, with what the dashboard shows. */
type Call = PageCall & { readonly shown: ShownPages };
type PageRoute = (call: Call) => Answer | Promise<Answer>;

/** All paths of pages. None takes the access token. */
const ROUTES: ReadonlyMap<string, PageRoute> = new Map<string, PageRoute>([
  ['GET /', dashboardPage],
  ['GET /dashboard/thumbnail', thumbnail],
  ['POST /dashboard/release', releaseLease],
  ['POST /dashboard/destroy', destroyBrowser],
  ['GET /live', livePage],
  ['GET /live/facts', liveFacts],
  ['GET /replay', replayPage],
  ['GET /replay/facts', replayFacts],
  ['GET /replay/poster', replayPoster],
  ['GET /replay/video', replayVideo],
]);

/** Answers a request for a page or for its content. @returns undefined for other requests. */
export async function callPage(
  pools: PoolSet,
  shown: ShownPages,
  request: IncomingMessage,
): Promise<Answer | undefined> {
  const { pathname, searchParams: query } = urlOf(request);
  const route = ROUTES.get(`${methodOf(request)} ${pathname}`) ?? assetRoute(request, pathname);
  if (!route) return undefined;
  const answer = await callRoute(route, { pools, shown, request, query });
  return { ...answer, headers: { ...PAGE_HEADERS, ...answer.headers } };
}

async function callRoute(route: PageRoute, call: Call): Promise<Answer> {
  try {
    return await route(call);
  } catch (error) {
    const isPerson = call.request.headers.accept?.includes('text/html');
    return isPerson ? faultPage(toFault(error)) : faultAnswer(error);
  }
}

const ASSETS: ReadonlyMap<string, readonly [type: string, text: string]> = new Map([
  ['icon.svg', ['image/svg+xml', LOGO_SVG]],
  ['base.css', ['text/css', BASE_STYLE]],
  ['replay.css', ['text/css', REPLAY_STYLE]],
  ['live.css', ['text/css', LIVE_STYLE]],
  ['dashboard.css', ['text/css', DASHBOARD_STYLE]],
]);

/** GET /pages/{file}: a style or a script. They contain nothing private and need no token. */
function assetRoute(request: IncomingMessage, path: string): PageRoute | undefined {
  const file = /^\/pages\/([a-z-]+\.[a-z]+)$/.exec(path)?.[1];
  return file === undefined || methodOf(request) !== 'GET' ? undefined : () => asset(file);
}

async function asset(file: string): Promise<Answer> {
  const [type, text] = ASSETS.get(file) ?? ['text/javascript', await scriptOf(file)];
  return textAnswer(type, text);
}

async function scriptOf(file: string): Promise<string> {
  if (!file.endsWith('.js')) throw notFound('There is no such file.');
  return await readScript(file).catch(() => {
    throw notFound('There is no such script. If you run from source, build the package first.');
  });
}
