import type { EndedRow, ReplayRow } from '../../dashboard/dashboard-state.js';
import { nameAndTags } from './dashboard-card.js';
import { make, newTabLink } from './dom.js';
import { clock, LEASE_OUTCOMES, RECORDING_STATES, seconds, short } from './format.js';

/** An ended lease: its outcome, its duration, and the links to its recordings. */
export function endedRow(row: EndedRow): HTMLElement {
  const { outcome, leaseName, sessionId, duration, endedAt, replays } = row;
  const [text, kind] = LEASE_OUTCOMES[outcome];
  const name = leaseName ?? `session ${short(sessionId)}`;
  const links = replays.map((url) => newTabLink('Replay', `Open the replay of the ended lease ${name}`, url));
  return make(
    'li',
    {},
    badgeOf(text, kind),
    ...leaseFacts(row),
    make('span', { class: 'number' }, `ran ${seconds(duration)}`),
    timeOf('ended', endedAt),
    make('span', { class: 'links' }, ...links),
  );
}

export function replayRow(row: ReplayRow): HTMLElement {
  const { state, leaseName, sessionId, startedAt, duration, viewUrl } = row;
  const [text, kind] = RECORDING_STATES[state];
  const name = leaseName ?? `session ${short(sessionId)}`;
  return make(
    'li',
    {},
    badgeOf(text, kind),
    ...leaseFacts(row),
    make('span', { class: 'number' }, duration === undefined ? '' : clock(duration)),
    timeOf('started', startedAt),
    make('span', { class: 'links' }, newTabLink('Open', `Open the replay of ${name}`, viewUrl)),
  );
}

function badgeOf(text: string, kind: string): HTMLElement {
  return make('span', { class: 'state' }, make('span', { class: `badge ${kind}` }, text));
}

function leaseFacts(row: EndedRow | ReplayRow): HTMLElement[] {
  const names = nameAndTags(row);
  const name = make(
    'span',
    { class: 'name' },
    ...(names.length > 0 ? names : [make('span', { class: 'dim' }, 'no name')]),
  );
  const session = make('code', { title: row.sessionId }, short(row.sessionId));
  return [name, make('span', { class: 'dim' }, 'pool ', row.pool), session];
}

/** Without its seconds, so that the facts of a row fit on one line. */
function timeOf(what: string, iso: string): HTMLElement {
  const date = new Date(iso);
  const time = date.toLocaleTimeString([], { timeStyle: 'short' });
  return make('span', { class: 'number dim', title: date.toLocaleString() }, `${what} ${time}`);
}
