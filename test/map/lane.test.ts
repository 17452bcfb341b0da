import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Workspace } from '../../src/connect/connector.js';
import { Lane, type LaneLease } from '../../src/map/lane.js';

const TASKS = 8;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});

afterEach(() => {
  vi.useRealTimers();
});

it.each([
  ['context', 'near', 1, 1],
  ['context', 'at an unknown distance', undefined, 1],
  ['context', 'far away', 50, 2],
  ['context', 'far away and busy', 25, 1],
  ['storage', 'near', 1, 0],
  ['storage', 'at an unknown distance', undefined, 0],
  ['storage', 'far away', 50, 1],
  ['storage', 'far away and busy', 25, 0],
] as const)(
  '%s, browser %s: prepares pages beside that of the task',
  async (isolation, _distance, roundTrip, prepared) => {
    const open = { now: 0, most: 0 };
    const openWorkspace = async (): Promise<Workspace<object>> => {
      open.most = Math.max(open.most, ++open.now);
      await wait(300);
      const reset = async () => {
        await wait(300);
        return isolation === 'storage';
      };
      return { handles: {}, reset, close: async () => void open.now-- };
    };
    const lease: LaneLease<object> = { openWorkspace, roundTrip };
    const lane = new Lane(lease, isolation, () => true);
    const work = async () => {
      for (let task = 0; task < TASKS; task++) {
        await lane.workspace();
        lane.prepare();
        await lane.clear({ reusable: true });
      }
    };
    const working = work();
    await vi.advanceTimersByTimeAsync(2 * TASKS * 300);
    await working;
    expect(open.most).toBe(1 + prepared);
    await lane.end();
  },
);

async function wait(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}
