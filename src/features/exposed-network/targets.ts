import type { CdpClient } from '../../connect/cdp-client.js';
import type { FrameTree } from '../../connect/message.js';

/** Whether a page contains a frame, in its process. */
export async function containsFrame(cdp: CdpClient, targetId: string, frameId: string): Promise<boolean> {
  try {
    return await inTarget(cdp, targetId, async (session) => {
      const { frameTree } = await cdp.send('Page.getFrameTree', {}, session);
      return hasFrame(frameTree, frameId);
    });
  } catch {
    // It was closed, or it is a worker.
    return false;
  }
}

function hasFrame({ frame, childFrames = [] }: FrameTree, id: string): boolean {
  return frame.id === id || childFrames.some((child) => hasFrame(child, id));
}

/** Opens a session of a target for some commands. */
export async function inTarget<T>(
  cdp: CdpClient,
  targetId: string,
  work: (sessionId: string) => Promise<T>,
): Promise<T> {
  const sessionId = await cdp.attach(targetId);
  try {
    return await work(sessionId);
  } finally {
    cdp.send('Target.detachFromTarget', { sessionId }).catch(() => {});
  }
}
