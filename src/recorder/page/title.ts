import type { ReplayFacts } from './replay-page.js';

/** The marks of a hand-off, which name no test and no task. */
const OF_HANDOFF = /^(?:A person took over\.|The person answered: |The hand-off ended )/;

/** What a recording is called: the tests or tasks that failed in it, or the only one in it, otherwise its lease, or a lease of its pool. */
export function titleOf({
  timeline,
  leaseName,
  pool,
}: Pick<ReplayFacts, 'timeline' | 'leaseName' | 'pool'>): string {
  const failures = timeline.flatMap(({ kind, status }) => (kind === 'failed' ? (status ?? []) : []));
  const [failed, ...further] = new Set(failures);
  if (failed !== undefined) return further.length > 0 ? `${failed} (and ${further.length} more)` : failed;
  const [mark, ...others] = timeline.filter(({ kind, text }) => kind === 'mark' && !OF_HANDOFF.test(text));
  if (mark && mark.text !== '' && others.length === 0) return mark.text;
  return leaseName ?? `Lease of ${pool}`;
}
