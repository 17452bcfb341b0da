import type { Answer } from '../http/answer.js';
import { HttpFault, notFound } from '../http/http-fault.js';
import { readJson } from '../http/read-json.js';
import type { RouteCall } from '../http/route-call.js';
import { readRecordingRequest } from '../replays/recording-request.js';
import { replayBody } from './replay-body.js';

/** POST /browsers/{id}/replays (beyond the given interface): starts a recording of the lease. */
export async function startReplay({ request, id, pools }: RouteCall): Promise<Answer> {
  const { name, headless, telemetry } = pools.poolOfSession(id).settings;
  const wanted = readRecordingRequest(await readJson(request));
  if (headless && !pools.quirks.recordsHeadless) throw headlessRefused();
  const lease = pools.lease(id);
  if (!lease) throw notFound('This browser session is not leased.');
  const recording = await pools.recorder.start(lease, { pool: name, telemetry, request: wanted });
  return { status: 201, body: await replayBody(pools, recording) };
}

function headlessRefused(): HttpFault {
  return new HttpFault(400, 'headless_not_supported', 'A headless browser is not recorded.');
}
