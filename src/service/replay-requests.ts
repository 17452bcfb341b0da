import { InvalidOptionError, rejectUnknownOptions } from '../shared/errors.js';
import { showValue } from '../shared/json.js';
import { checkPathSegment } from './checks.js';
import { REQUEST_TIMEOUT } from './http.js';
import type { RequestOptions } from './pool-options.js';
import { readReplay, readReplays } from './resources.js';
import { expectSuccess, readJson, responseError } from './responses.js';
import type { ServiceLink } from './service-link.js';
import type { Replay, ReplayRequest } from './wire.js';

/** Which session a request is about. */
export interface SessionFacts {
  pool: string;
  sessionId: string;
}

export async function listReplays(
  link: ServiceLink,
  facts: SessionFacts,
  options: RequestOptions,
): Promise<Replay[]> {
  rejectUnknownOptions(options, ['signal'], 'replays');
  const { signal } = options;
  const path = replaysPath(link, facts);
  const response = await link.send({ method: 'GET', path, facts, timeout: REQUEST_TIMEOUT, signal });
  const replays = readReplays(readJson(response, facts));
  if (!replays) throw responseError('is no list of replays', response, facts);
  return replays;
}

export async function startReplay(
  link: ServiceLink,
  facts: SessionFacts,
  body: ReplayRequest,
  options: RequestOptions,
): Promise<Replay> {
  checkReplayRequest(body);
  rejectUnknownOptions(options, ['signal'], 'startReplay');
  const { signal } = options;
  const path = replaysPath(link, facts);
  const response = await link.send({ method: 'POST', path, body, facts, timeout: REQUEST_TIMEOUT, signal });
  const replay = readReplay(readJson(response, facts));
  if (!replay) throw responseError('is no replay', response, facts);
  return replay;
}

export async function stopReplay(
  link: ServiceLink,
  facts: SessionFacts,
  replayId: string,
  options: RequestOptions,
): Promise<void> {
  rejectUnknownOptions(options, ['signal'], 'stopReplay');
  const { signal } = options;
  const path = replaysPath(link, facts, replayId, 'stop');
  const response = await link.send({ method: 'POST', path, facts, timeout: REQUEST_TIMEOUT, signal });
  expectSuccess(response, facts);
}

/** The path of a session's replays, or of one of them. */
export function replaysPath(link: ServiceLink, { sessionId }: SessionFacts, ...further: string[]): string {
  checkPathSegment(sessionId, 'sessionId');
  if (further.length > 0) checkPathSegment(further[0], 'replayId');
  return link.path('browsers', sessionId, 'replays', ...further);
}

function checkReplayRequest(request: ReplayRequest): void {
  rejectUnknownOptions(request, ['framerate', 'max_duration_in_seconds'], 'startReplay');
  for (const field of ['framerate', 'max_duration_in_seconds'] as const) {
    const value = request[field];
    if (value === undefined || (Number.isSafeInteger(value) && value > 0)) continue;
    throw new InvalidOptionError(
      field,
      `${field} must be a whole number, 1 or more, not ${showValue(value)}.`,
    );
  }
}
