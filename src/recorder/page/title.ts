import type { ReplayFacts } from './replay-page.js';

/** What a recording is called: the only test or task in it, otherwise its lease, otherwise its pool and when it started. */
export function titleOf({
  timeline,
  leaseName,
  pool,
  startedAt,
}: Pick<ReplayFacts, 'timeline' | 'leaseName' | 'pool' | 'startedAt'>): string {
  const [mark, ...others] = timeline.filter(({ kind }) => kind === 'mark');
  if (mark && mark.text !== '' && others.length === 0) return mark.text;
  // In UTC: the page, the list of replays and the tab of the browser show the same name.
  return leaseName ?? `${pool}, ${startedAt.slice(0, 16).replace('T', ' ')} UTC`;
}
