import type { ReplayFacts } from './replay-page.js';

/** What a recording is called: the only test or task in it, otherwise its lease, otherwise a lease of its pool. */
export function titleOf({
  timeline,
  leaseName,
  pool,
}: Pick<ReplayFacts, 'timeline' | 'leaseName' | 'pool'>): string {
  const [mark, ...others] = timeline.filter(({ kind }) => kind === 'mark');
  if (mark && mark.text !== '' && others.length === 0) return mark.text;
  return leaseName ?? `Lease of ${pool}`;
}
