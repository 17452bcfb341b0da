import type { ReplayRow } from '../messages.js';
import { make, remake } from './dom.js';
import { clock, short } from './format.js';

const STATES: Readonly<Record<ReplayRow['state'], readonly [text: string, kind: string]>> = {
  recording: ['recording', 'bad pulse'],
  writing: ['being written', 'warn pulse'],
  ready: ['ready', 'good'],
  none: ['no film', ''],
};

/** One recording. */
export function renderReplay(row: ReplayRow, before: HTMLElement | undefined): HTMLElement {
  return remake(before, { ...row, viewUrl: undefined }, () => newRow(row));
}

function newRow({ state, leaseName, sessionId, pool, startedAt, duration, viewUrl }: ReplayRow): HTMLElement {
  const [text, kind] = STATES[state];
  const name = leaseName ?? `session ${short(sessionId)}`;
  const link = make(
    'a',
    { href: viewUrl, target: '_blank', rel: 'noreferrer', 'aria-label': `Open the replay of ${name}` },
    'Open',
  );
  const cells: readonly (Node | string)[] = [
    make('span', { class: `badge ${kind}` }, text),
    leaseName ?? '',
    pool,
    make('code', { title: sessionId }, short(sessionId)),
    new Date(startedAt).toLocaleTimeString(),
    duration === undefined ? '' : clock(duration),
    link,
  ];
  return make(
    'tr',
    {},
    ...cells.map((cell, index) => make('td', index > 4 ? { class: 'end number' } : {}, cell)),
  );
}
