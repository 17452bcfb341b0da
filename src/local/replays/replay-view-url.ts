import type { LeaseTokens } from '../sockets/jwt.js';

/** URL of the page that shows a recording (interface: Replay, replay_view_url). Its jwt is good for this one only. */
export async function replayViewUrl(
  host: string,
  sessionId: string,
  replayId: string,
  sign: LeaseTokens['signReplay'],
): Promise<string> {
  const query = new URLSearchParams({ jwt: await sign(sessionId, replayId), replay_id: replayId });
  return `http://${host}/browsers/${sessionId}/replays/view?${query}`;
}
