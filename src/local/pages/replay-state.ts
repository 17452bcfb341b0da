import type { LocalReplay } from '../replays/local-replay.js';
import type { ReplayState } from './messages.js';

/** How far a recording has come, for a person. */
export function replayState({ film, finishedAt, timeline }: LocalReplay): ReplayState {
  if (film) return 'ready';
  if (finishedAt) return 'none';
  return timeline.at(-1)?.kind === 'recording-ended' ? 'writing' : 'recording';
}
