import type { HttpRoute } from '../http/server.js';
import type { Api } from './api.js';
import { deleteBrowser, describeBrowser, listBrowsers } from './browser-routes.js';
import { acquire, flush, poolRecord, release } from './pool-routes.js';
import { listReplays, replayVideo, startReplay, stopReplay } from './replay-routes.js';

export function apiRoutes(api: Api): readonly HttpRoute[] {
  return [
    ['acquire', 'POST', /^\/browser_pools\/([^/]+)\/acquire$/, (call) => acquire(api, call)],
    ['release', 'POST', /^\/browser_pools\/([^/]+)\/release$/, (call) => release(api, call)],
    ['flush', 'POST', /^\/browser_pools\/([^/]+)\/flush$/, (call) => flush(api, call)],
    ['pool', 'GET', /^\/browser_pools\/([^/]+)$/, (call) => poolRecord(api, call)],
    ['replays', 'GET', /^\/browsers\/([^/]+)\/replays$/, (call) => listReplays(api, call)],
    ['start-replay', 'POST', /^\/browsers\/([^/]+)\/replays$/, (call) => startReplay(api, call)],
    ['video', 'GET', /^\/browsers\/([^/]+)\/replays\/([^/]+)$/, (call) => replayVideo(api, call)],
    ['stop-replay', 'POST', /^\/browsers\/([^/]+)\/replays\/([^/]+)\/stop$/, (call) => stopReplay(api, call)],
    ['sessions', 'GET', /^\/browsers$/, (call) => listBrowsers(api, call)],
    ['session', 'GET', /^\/browsers\/([^/]+)$/, (call) => describeBrowser(api, call)],
    ['delete', 'DELETE', /^\/browsers\/([^/]+)$/, (call) => deleteBrowser(api, call)],
  ];
}
