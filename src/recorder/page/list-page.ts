import type { ReplayFacts } from './replay-page.js';
import { LIST_BODY, LIST_STYLE } from './list-html.js';
import { FILES_BESIDE, jsonIn, savePage } from './saved-page.js';

/** A recording in the list of a folder. */
export interface ListedReplay {
  /** Name of its folder, beside the list. */
  readonly folder: string;
  readonly title: string;
  readonly facts: Pick<ReplayFacts, 'state' | 'pool' | 'service' | 'tags' | 'result' | 'startedAt'>;
  /** Milliseconds. */
  readonly length?: number | undefined;
  /** The moment of the first failure, in milliseconds. */
  readonly failedAt?: number | undefined;
}

/** Names of folders of recordings: no path, no hidden folder. */
const PLAIN_NAME = /^\w[\w.-]{0,254}$/;

/** Writes the list of the recordings of a folder, the newest first. Leaves out a recording whose folder has no plain name. */
export async function saveListPage(path: string, items: readonly ListedReplay[]): Promise<void> {
  const listed = items.filter(({ folder }) => PLAIN_NAME.test(folder));
  const replays = listed.toSorted((one, other) => timeOf(other) - timeOf(one)).map(shownOf);
  const page = {
    title: 'Replays',
    script: 'replay-list',
    style: LIST_STYLE,
    body: LIST_BODY,
    id: 'replays-data',
    media: FILES_BESIDE,
  };
  await savePage(path, page, [jsonIn(replays)]);
}

/** A caller can have facts that the list does not need. */
function shownOf({ folder, title, facts, length, failedAt }: ListedReplay): ListedReplay {
  const { state, pool, service, tags, result, startedAt } = facts;
  return { folder, title, facts: { state, pool, service, tags, result, startedAt }, length, failedAt };
}

/** A date that cannot be read is the oldest. */
function timeOf({ facts: { startedAt } }: ListedReplay): number {
  return Date.parse(startedAt) || 0;
}
