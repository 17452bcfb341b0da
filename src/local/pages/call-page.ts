import type { IncomingMessage } from 'node:http';
import { faultAnswer, type Answer } from '../http/answer.js';
import { toFault } from '../http/http-fault.js';
import { asset } from './assets.js';
import { dashboardPage } from './dashboard-page.js';
import { livePage } from './live-page.js';
import { faultPage, PAGE_HEADERS } from './page-answer.js';
import type { PageCall } from './page-call.js';
import type { PoolSet } from '../pool/pool-set.js';
import { replayFacts, replayFilm, replayPage } from './replay-page.js';

type PageRoute = (call: PageCall) => Answer | Promise<Answer>;

/** What a person's browser asks for. All are GET, and none takes the access token. */
const PAGES: readonly (readonly [path: RegExp, route: PageRoute])[] = [
  [/^\/$/, dashboardPage],
  [/^\/browsers\/([^/]+)\/live$/, livePage],
  [/^\/browsers\/([^/]+)\/replays\/view$/, replayPage],
  [/^\/browsers\/([^/]+)\/replays\/facts$/, replayFacts],
  [/^\/browsers\/([^/]+)\/replays\/film$/, replayFilm],
  [/^\/pages\/([a-z-]+\.[a-z]+)$/, asset],
];

/** Makes a whole URL of a path. */
const BASE = 'http://127.0.0.1';

/** Answers a request for a page, or for a part of one; nothing when it asks for none. */
export async function callPage(pools: PoolSet, request: IncomingMessage): Promise<Answer | undefined> {
  const url = request.url ?? '/';
  if (!URL.canParse(url, BASE)) return undefined;
  const { pathname, searchParams: query } = new URL(url, BASE);
  const found = PAGES.find(([path]) => request.method === 'GET' && path.test(pathname));
  if (!found) return undefined;
  const [path, route] = found;
  const call = { pools, request, query, id: path.exec(pathname)![1] ?? '' };
  const answer = await answerPage(route, call);
  return { ...answer, headers: { ...PAGE_HEADERS, ...answer.headers } };
}

async function answerPage(route: PageRoute, call: PageCall): Promise<Answer> {
  try {
    return await route(call);
  } catch (error) {
    const fault = toFault(error);
    const isPerson = call.request.headers.accept?.includes('text/html');
    return isPerson ? faultPage(fault) : faultAnswer(fault);
  }
}
