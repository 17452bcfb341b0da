import { serviceError } from '../net/response.js';
import type { BrowserService, Replay } from '../services/browser-service.js';
import { webFault } from '../shared/urls.js';

/** Further answers of a service, each for the part of its adapter that reads it. */
export interface AnswerSamples {
  /** Refusals, and what people must read about them. */
  readonly errors?: readonly ErrorSample[];
  /** An answer to the list of recordings, and the ids of the recordings in it. */
  readonly recordings?: { readonly response: unknown; readonly ids: readonly string[] };
  /** Answers to the search for a video: when it is written, and before. */
  readonly video?: { readonly replayId: string; readonly ready: unknown; readonly pending?: unknown };
  /** An answer to the list of sessions, with this session and another one. */
  readonly sessions?: unknown;
  /** Most tags that the service stores with a session, if it refuses more. */
  readonly mostTags?: number;
}

/** A refusal of a service. */
export interface ErrorSample {
  /** The HTTP status. */
  readonly status: number;
  /** JSON, or a text. */
  readonly body: unknown;
  /** A part of the message. */
  readonly says: string;
  /** The code of the service, if it has one. */
  readonly code?: string;
}

interface ExpectedSession {
  readonly id: string;
  readonly leaseId: string;
}

/** The library reads the errors of all services, whatever their form: these are the forms of one. */
export function* errorFaults({ errors = [] }: AnswerSamples): Iterable<string> {
  for (const { status, body, says, code = `http_${status}` } of errors) {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const error = serviceError({ status, headers: {}, body: text }, {});
    if (!error.message.includes(says)) yield `The error for ${text} does not say "${says}": ${error.message}`;
    if (error.code !== code) yield `The error for ${text} has the code ${error.code}, not ${code}.`;
  }
}

export function* recordingFaults(
  { replays }: BrowserService,
  { recordings, video }: AnswerSamples,
  { id }: ExpectedSession,
): Iterable<string> {
  if (recordings) {
    if (!replays) return yield 'The service has no replays, but a sample of them.';
    const all = replays.read(recordings.response, id);
    const ids = all.map(({ replay_id }) => replay_id ?? '');
    if (ids.join() !== recordings.ids.join())
      yield `replays.read reads ${JSON.stringify(ids)}, not ${JSON.stringify(recordings.ids)}.`;
    for (const replay of all) yield* replayFaults(replay);
    const hasLinks = all.some(({ replay_view_url }) => replay_view_url !== undefined);
    if (hasLinks && replays.access === undefined)
      yield 'replays lacks access: what opening the links of the recordings needs.';
  }
  if (video) yield* videoFaults(replays, video, id);
}

function* replayFaults({ started_at, finished_at, replay_view_url: link }: Replay): Iterable<string> {
  for (const time of [started_at, finished_at])
    if (time !== undefined && Number.isNaN(Date.parse(time))) yield `replays.read reads the time ${time}.`;
  if (link !== undefined && !URL.canParse(link)) yield `replays.read reads the link ${link}.`;
}

function* videoFaults(
  replays: BrowserService['replays'],
  { replayId, ready, pending }: NonNullable<AnswerSamples['video']>,
  id: string,
): Iterable<string> {
  const video = replays?.video?.(id, replayId);
  if (!video || !('find' in video))
    return yield 'replays.video returns no search, but there is a sample of one.';
  const place = video.read(ready);
  if (place === undefined) yield 'replays.video reads no video in the sample that has one.';
  const at = { baseUrl: new URL('https://pool.example.com'), insecure: false };
  const fault = typeof place === 'string' ? webFault(place, at) : undefined;
  if (fault !== undefined) yield `replays.video reads an address that ${fault}.`;
  if (pending !== undefined && video.read(pending) !== undefined)
    yield 'replays.video reads a video in the sample without one.';
}

export function* sessionFaults(
  service: BrowserService,
  { sessions }: AnswerSamples,
  { id, leaseId }: ExpectedSession,
): Iterable<string> {
  if (sessions === undefined) return;
  if (!service.sessions) return yield 'The service has no sessions, but a sample of them.';
  const all = service.sessions.read(sessions);
  const ours = all.filter(({ lease }) => lease === leaseId).map((session) => session.id);
  if (ours.join() !== id)
    yield `sessions.read finds our lease in ${JSON.stringify(ours)}, not only in ${id}.`;
  if (all.length < 2) yield 'sessions.read does not read the other session.';
}

/** The tags of this library must not be the reason of a refusal. */
export function* tagFaults(
  { acquire, find }: BrowserService,
  { mostTags }: AnswerSamples,
  { leaseId }: ExpectedSession,
): Iterable<string> {
  if (mostTags === undefined) return;
  const tags = Object.fromEntries(Array.from({ length: mostTags }, (_, at) => [`user-tag-${at}`, '']));
  const lease = { pool: 'pool', id: leaseId, mark: 'mark', tags, keepAlive: false, record: false };
  const body = JSON.stringify(acquire(lease) ?? {});
  if (Object.keys(tags).some((tag) => !body.includes(tag))) yield `acquire drops tags of the user.`;
  if (!body.includes(leaseId)) {
    if (find?.(lease) !== undefined)
      yield 'find searches for the id of a lease whose acquire request could not contain it.';
    return;
  }
  yield `acquire adds a tag of this library to ${mostTags} tags of the user, which is one too many.`;
}
