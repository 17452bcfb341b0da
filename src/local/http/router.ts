import {
  deleteBrowser,
  listReplays,
  replayVideo,
  startReplay,
  stopReplay,
} from '../routes/browser-routes.js';
import { acquire, describeBrowser, flush, poolRecord, release } from '../routes/pool-routes.js';
import { HttpFault, notFound, type Answer } from './answer.js';
import type { RouteCall } from './request.js';

type Route = (call: RouteCall) => Answer | Promise<Answer>;

/** All paths of the API. */
const ROUTES: readonly (readonly [method: string, path: RegExp, route: Route])[] = [
  ['POST', /^\/browser_pools\/([^/]+)\/acquire$/, acquire],
  ['POST', /^\/browser_pools\/([^/]+)\/release$/, release],
  ['POST', /^\/browser_pools\/([^/]+)\/flush$/, flush],
  ['GET', /^\/browser_pools\/([^/]+)$/, poolRecord],
  ['GET', /^\/browsers\/([^/]+)\/replays$/, listReplays],
  ['POST', /^\/browsers\/([^/]+)\/replays$/, startReplay],
  ['GET', /^\/browsers\/([^/]+)\/replays\/([^/]+)$/, replayVideo],
  ['POST', /^\/browsers\/([^/]+)\/replays\/([^/]+)\/stop$/, stopReplay],
  ['GET', /^\/browsers\/([^/]+)$/, describeBrowser],
  ['DELETE', /^\/browsers\/([^/]+)$/, deleteBrowser],
];

/** Calls the route of a request. @throws HttpFault 404 or 405 */
export async function callRoute(call: Omit<RouteCall, 'id' | 'replayId'>, path: string): Promise<Answer> {
  const matching = ROUTES.filter(([, pattern]) => pattern.test(path));
  if (matching.length === 0) throw notFound('There is no such path.');
  const found = matching.find(([method]) => method === call.request.method);
  if (!found) throw wrongMethod(matching.map(([method]) => method).join(', '));
  const [, pattern, route] = found;
  const [id = '', replayId = ''] = pattern.exec(path)!.slice(1).map(decode);
  return await route({ ...call, id, replayId });
}

function wrongMethod(allow: string): HttpFault {
  return new HttpFault(405, 'method_not_allowed', `This path allows ${allow}.`, { headers: { allow } });
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw notFound('The path has an invalid percent-encoding.');
  }
}
