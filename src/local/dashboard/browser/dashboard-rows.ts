import type { EndedRow, ReplayRow } from '../dashboard-state.js';
import { LEASE_ENDS } from '../../pool/browser/lease-ends.js';
import { nameAndTags } from './dashboard-card.js';
import { make, newTabLink, timeOf } from '../../../shared/page/browser/dom.js';
import { RECORDING_STATES } from '../../../recorder/page/browser/recording-states.js';
import { clock, seconds, short, type Badge } from '../../../shared/page/browser/format.js';

/** An ended lease: its outcome, its duration, and the links to its recordings. */
export function endedRow(row: EndedRow): HTMLElement {
  const label = `Open the replay of the ended lease ${nameOf(row)}`;
  const links = row.replays.map((url) => newTabLink('Replay', label, url));
  const length = `ran ${seconds(row.duration)}`;
  const time = moment('ended ', row.endedAt);
  return rowOf(row, { badge: LEASE_ENDS[row.outcome], length, time, links });
}

export function replayRow(row: ReplayRow): HTMLElement {
  const link = newTabLink('Open', `Open the replay of ${nameOf(row)}`, row.viewUrl);
  const length = row.duration === undefined ? '' : clock(row.duration);
  const time = moment('started ', row.startedAt);
  return rowOf(row, { badge: RECORDING_STATES[row.state], length, time, links: [link] });
}

interface Cells {
  readonly badge: Badge;
  readonly length: string;
  readonly time: HTMLElement;
  readonly links: readonly HTMLElement[];
}

function rowOf(row: EndedRow | ReplayRow, { badge, length, time, links }: Cells): HTMLElement {
  const [text, kind] = badge;
  return make(
    'li',
    {},
    make('span', { class: 'state' }, make('span', { class: `badge ${kind}` }, text)),
    make('span', { class: 'line name' }, ...nameAndTags(row)),
    make('span', { class: 'dim' }, 'pool ', row.pool),
    make('code', { title: row.sessionId }, short(row.sessionId)),
    make('span', { class: 'number' }, length),
    time,
    make('span', { class: 'links' }, ...links),
  );
}

function nameOf({ leaseName, sessionId }: EndedRow | ReplayRow): string {
  return leaseName ?? `session ${short(sessionId)}`;
}

function moment(what: string, iso: string): HTMLElement {
  return make('span', { class: 'dim' }, what, timeOf(new Date(iso)));
}
