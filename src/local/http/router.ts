import {
  deleteBrowser,
  describeBrowser,
  listBrowsers,
  listReplays,
  replayVideo,
  startReplay,
  stopReplay,
} from '../routes/browser-routes.js';
import { acquire, flush, poolRecord, release } from '../routes/pool-routes.js';
import type { RequestPlace } from '../chaos/faults.js';
import { HttpFault, notFound, type Answer } from './answer.js';
import type { RouteCall } from './request.js';

type Route = (call: RouteCall) => Answer | Promise<Answer>;

/** All paths of the service. */
const ROUTES: readonly (readonly [name: RequestPlace, method: string, path: RegExp, route: Route])[] = [
  ['acquire', 'POST', /^\/browser_pools\/([^/]+)\/acquire$/, acquire],
  ['release', 'POST', /^\/browser_pools\/([^/]+)\/release$/, release],
  ['flush', 'POST', /^\/browser_pools\/([^/]+)\/flush$/, flush],
  ['pool', 'GET', /^\/browser_pools\/([^/]+)$/, poolRecord],
  ['replays', 'GET', /^\/browsers\/([^/]+)\/replays$/, listReplays],
  ['start-replay', 'POST', /^\/browsers\/([^/]+)\/replays$/, startReplay],
  ['video', 'GET', /^\/browsers\/([^/]+)\/replays\/([^/]+)$/, replayVideo],
  ['stop-replay', 'POST', /^\/browsers\/([^/]+)\/replays\/([^/]+)\/stop$/, stopReplay],
  ['sessions', 'GET', /^\/browsers$/, listBrowsers],
  ['session', 'GET', /^\/browsers\/([^/]+)$/, describeBrowser],
  ['delete', 'DELETE', /^\/browsers\/([^/]+)$/, deleteBrowser],
];

/** Finds the route of a request. @throws HttpFault 404 or 405 */
export function findRoute(method: string | undefined, path: string) {
  const matching = ROUTES.filter(([, , pattern]) => pattern.test(path));
  if (matching.length === 0) throw notFound('There is no such path.');
  const found = matching.find(([, allowed]) => allowed === method);
  if (!found) throw wrongMethod(matching.map(([, allowed]) => allowed).join(', '));
  const [name, , pattern, route] = found;
  const [id = '', replayId = ''] = pattern.exec(path)!.slice(1).map(decode);
  const call = async (given: Omit<RouteCall, 'id' | 'replayId'>) => await route({ ...given, id, replayId });
  return { name, call };
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
