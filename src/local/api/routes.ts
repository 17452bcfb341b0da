import type { HttpRoute } from '../http/server.js';
import type { Api } from './api.js';
import { deleteBrowser, describeBrowser, listBrowsers } from './browser-routes.js';
import { acquire, flush, poolRecord, release } from './pool-routes.js';
import { listReplays, replayVideo, startReplay, stopReplay } from './replay-routes.js';

export function apiRoutes(api: Api): readonly HttpRoute[] {
  return [
    ['POST', /^\/browser_pools\/([^/]+)\/acquire$/, (call) => acquire(api, call)],
    ['POST', /^\/browser_pools\/([^/]+)\/release$/, (call) => release(api, call)],
    ['POST', /^\/browser_pools\/([^/]+)\/flush$/, (call) => flush(api, call)],
    ['GET', /^\/browser_pools\/([^/]+)$/, (call) => poolRecord(api, call)],
    ['GET', /^\/browsers\/([^/]+)\/replays$/, (call) => listReplays(api, call)],
    ['POST', /^\/browsers\/([^/]+)\/replays$/, (call) => startReplay(api, call)],
    ['GET', /^\/browsers\/([^/]+)\/replays\/([^/]+)$/, (call) => replayVideo(api, call)],
    ['POST', /^\/browsers\/([^/]+)\/replays\/([^/]+)\/stop$/, (call) => stopReplay(api, call)],
    ['GET', /^\/browsers$/, (call) => listBrowsers(api, call)],
    ['GET', /^\/browsers\/([^/]+)$/, (call) => describeBrowser(api, call)],
    ['DELETE', /^\/browsers\/([^/]+)$/, (call) => deleteBrowser(api, call)],
  ];
}
