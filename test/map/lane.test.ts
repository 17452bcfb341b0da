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
  { isolation: 'context', browser: 'near', roundTrip: 1, openTime: 300, prepared: 1 },
  { isolation: 'context', browser: 'near and busy', roundTrip: 1, openTime: 400, prepared: 0 },
  {
    isolation: 'context',
    browser: 'at an unknown distance',
    roundTrip: undefined,
    openTime: 300,
    prepared: 1,
  },
  { isolation: 'context', browser: 'far away', roundTrip: 200, openTime: 1700, prepared: 2 },
  { isolation: 'context', browser: 'far away and busy', roundTrip: 50, openTime: 900, prepared: 0 },
  { isolation: 'storage', browser: 'near', roundTrip: 1, openTime: 300, prepared: 0 },
  {
    isolation: 'storage',
    browser: 'at an unknown distance',
    roundTrip: undefined,
    openTime: 300,
    prepared: 0,
  },
  { isolation: 'storage', browser: 'far away', roundTrip: 200, openTime: 1700, prepared: 1 },
  { isolation: 'storage', browser: 'far away and busy', roundTrip: 50, openTime: 900, prepared: 0 },
] as const)(
  '$isolation, browser $browser: prepares $prepared pages beside that of the task',
  async ({ isolation, roundTrip, openTime, prepared }) => {
    const open = { now: 0, most: 0 };
    const openWorkspace = async (): Promise<Workspace<object>> => {
      open.most = Math.max(open.most, ++open.now);
      await wait(openTime);
      const reset = async () => {
        await wait(openTime);
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
    await vi.advanceTimersByTimeAsync(2 * TASKS * openTime);
    await working;
    expect(open.most).toBe(1 + prepared);
    await lane.end();
  },
);

async function wait(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}
