import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { Workspace } from '../../src/connect/connector.js';
import { Lane, type LaneLease } from '../../src/map/lane.js';

it.each([
  ['context', 1, 1],
  ['context', undefined, 1],
  ['context', 50, 2],
  ['storage', 1, 0],
  ['storage', undefined, 0],
  ['storage', 50, 1],
] as const)(
  '%s, round trip of %s ms: prepares %i pages beside that of the task',
  async (isolation, roundTrip, prepared) => {
    let open = 0;
    const openWorkspace = async (): Promise<Workspace<object>> => {
      open++;
      await sleep(5);
      const reset = async () => isolation === 'storage' && sleep(50, true);
      return { handles: {}, reset, close: async () => void open-- };
    };
    const lease: LaneLease<object> = { openWorkspace, roundTrip };
    const lane = new Lane(lease, isolation, () => true);
    for (let task = 0; task < 30; task++) {
      await lane.workspace();
      lane.prepare();
      expect(open).toBeLessThanOrEqual(1 + prepared);
      if (task < 29) await lane.clear({ reusable: true });
    }
    expect(open).toBe(1 + prepared);
    await lane.end();
  },
);
