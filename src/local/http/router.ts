import { acquire } from '../routes/acquire.js';
import { deleteBrowser } from '../routes/delete-browser.js';
import { flush } from '../routes/flush.js';
import { poolRecord } from '../routes/pool-record.js';
import { release } from '../routes/release.js';
import { replayFilm } from '../routes/replay-film.js';
import { replays } from '../routes/replays.js';
import { startReplay } from '../routes/start-replay.js';
import { stopReplay } from '../routes/stop-replay.js';
import type { Answer } from './answer.js';
import { HttpFault, notFound } from './http-fault.js';
import type { RouteCall } from './route-call.js';

type Route = (call: RouteCall) => Answer | Promise<Answer>;

/** Every path of the interface, each with one id in it, or with that of a replay behind it. */
const ROUTES: readonly { readonly method: string; readonly path: RegExp; readonly route: Route }[] = [
  { method: 'POST', path: /^\/browser_pools\/([^/]+)\/acquire$/, route: acquire },
  { method: 'POST', path: /^\/browser_pools\/([^/]+)\/release$/, route: release },
  { method: 'POST', path: /^\/browser_pools\/([^/]+)\/flush$/, route: flush },
  { method: 'GET', path: /^\/browser_pools\/([^/]+)$/, route: poolRecord },
  { method: 'GET', path: /^\/browsers\/([^/]+)\/replays$/, route: replays },
  { method: 'POST', path: /^\/browsers\/([^/]+)\/replays$/, route: startReplay },
  { method: 'GET', path: /^\/browsers\/([^/]+)\/replays\/([^/]+)$/, route: replayFilm },
  { method: 'POST', path: /^\/browsers\/([^/]+)\/replays\/([^/]+)\/stop$/, route: stopReplay },
  { method: 'DELETE', path: /^\/browsers\/([^/]+)$/, route: deleteBrowser },
];

/** Calls the route of a request. */
export async function callRoute(call: Omit<RouteCall, 'id' | 'replayId'>, path: string): Promise<Answer> {
  const matching = ROUTES.filter((route) => route.path.test(path));
  if (matching.length === 0) throw notFound('There is no such path.');
  const found = matching.find(({ method }) => method === call.request.method);
  if (!found) throw wrongMethod(matching.map(({ method }) => method));
  const [id = '', replayId = ''] = found.path.exec(path)!.slice(1).map(decode);
  return await found.route({ ...call, id, replayId });
}

function wrongMethod(allowed: readonly string[]): HttpFault {
  const headers = { allow: allowed.join(', ') };
  return new HttpFault(405, 'method_not_allowed', `This path takes ${headers.allow}.`, { headers });
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw notFound('The path is not encoded well.');
  }
}
