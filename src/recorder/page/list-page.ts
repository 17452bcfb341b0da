import { LOGO } from '../../shared/page/page.js';
import type { ReplayFacts } from './replay-page.js';
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
  /** The tests and the inputs that failed. */
  readonly failed?: readonly string[] | undefined;
}

const LIST_BODY = `
<header class="bar">
  ${LOGO}<h1>Replays</h1><span class="badge" id="count" role="status"></span>
  <button id="failed" aria-pressed="false" hidden></button><span class="grow"></span>
  <input type="search" id="search" placeholder="Name, tag, failed, succeeded" aria-label="Search by name, tag or result">
</header>
<main class="content">
  <ul class="replays" id="replays" aria-label="Replays"></ul>
  <p class="empty" id="none" hidden></p>
</main>`;

const LIST_STYLE = `
.content { max-width: 1100px; }
.replays { display: grid; gap: 10px; grid-template-columns: minmax(0, 1fr); }
.replays li { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: 4px 14px; padding: 10px; align-items: start; }
.shot { width: clamp(84px, 22vw, 128px); aspect-ratio: 8 / 5; border-radius: 8px; background: var(--raised); overflow: hidden; }
.shot img { width: 100%; height: 100%; object-fit: cover; display: block; }
.replays p { color: var(--dim); overflow-wrap: anywhere; margin-top: 4px; }
.empty { text-align: center; }
[aria-pressed="true"] { background: var(--soft); border-color: var(--accent); }
`;

/** Names of folders of recordings: no path, no hidden folder. */
const PLAIN_NAME = /^\w[\w.-]{0,254}$/;

/** Writes the list of the recordings of a folder, the newest first. Leaves out a recording whose folder has no plain name. */
export async function saveListPage(path: string, items: readonly ListedReplay[]): Promise<void> {
  const listed = items.filter(({ folder }) => PLAIN_NAME.test(folder));
  const replays = listed.toSorted((one, other) => timeOf(other) - timeOf(one)).map(shownOf);
  const facts = { title: 'Replays', script: 'replay-list', id: 'replays-data', media: FILES_BESIDE };
  await savePage(path, { ...facts, style: LIST_STYLE, body: LIST_BODY }, [jsonIn(replays)]);
}

/** A caller can have facts that the list does not need. */
function shownOf({ folder, title, facts, length, failedAt, failed }: ListedReplay): ListedReplay {
  const { state, pool, service, tags, result, startedAt } = facts;
  return {
    folder,
    title,
    facts: { state, pool, service, tags, result, startedAt },
    length,
    failedAt,
    failed,
  };
}

/** A date that cannot be read is the oldest. */
function timeOf({ facts: { startedAt } }: ListedReplay): number {
  return Date.parse(startedAt) || 0;
}
