import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Isolation } from '../../src/index.js';
import { Lane } from '../../src/jobs/lane.js';
import type { TaskContext } from '../../src/jobs/task-context.js';
import { useFakeClock } from '../support/fake-clock.js';

const TASKS = 8;
const CONTEXT = { options: undefined, key: '' };

beforeEach(() => useFakeClock({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

it.for<[Isolation, string, number | undefined, number, number]>([
  ['context', 'near', 1, 300, 1],
  ['context', 'near and busy', 1, 400, 0],
  ['context', 'at an unknown distance', undefined, 300, 1],
  ['context', 'far away', 200, 1700, 2],
  ['context', 'far away and busy', 50, 900, 0],
  ['storage', 'near', 1, 300, 0],
  ['storage', 'at an unknown distance', undefined, 300, 0],
  ['storage', 'far away', 200, 1700, 1],
  ['storage', 'far away and busy', 50, 900, 0],
])(
  '%s, browser %s (round trip %s ms, page opens in %i ms): prepares %i pages beside that of the task',
  async ([isolation, , roundTrip, openTime, prepared]) => {
    const open = { now: 0, most: 0 };
    const wait = () => new Promise((resolve) => setTimeout(resolve, openTime));
    const openWorkspace = async () => {
      open.most = Math.max(open.most, ++open.now);
      await wait();
      const reset = async () => (await wait(), isolation === 'storage');
      return { handles: {}, reset, close: async () => void open.now-- };
    };
    const lane = new Lane<object>({ openWorkspace, roundTrip }, isolation, () => true);
    const work = async () => {
      for (let task = 0; task < TASKS; task++) {
        await lane.workspace(CONTEXT);
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

const [GERMAN, FRENCH] = ['de', 'fr'].map((key) => ({ options: { locale: key }, key })) as [
  TaskContext,
  TaskContext,
];

it.for<[Isolation, TaskContext[], opened: number]>([
  // Prepared after each of the first two tasks, and after the fourth: the last one is not used.
  ['context', [GERMAN, GERMAN, FRENCH, FRENCH], 6],
  // Only the first task has none before it that differs.
  ['context', [GERMAN, FRENCH, GERMAN, FRENCH], 5],
  ['storage', [GERMAN, GERMAN, FRENCH, FRENCH, GERMAN], 3],
  ['none', [GERMAN, GERMAN, FRENCH, FRENCH, GERMAN], 3],
])(
  '%s: gives each task a context with its own options, and prepares the likely one',
  async ([isolation, contexts, opened]) => {
    const open = new Set<object>();
    let count = 0;
    const openWorkspace = async (_isolation: Isolation, options?: object) => {
      const handles = { number: ++count, options };
      open.add(handles);
      return {
        handles,
        reset: async () => isolation !== 'context',
        close: async () => void open.delete(handles),
      };
    };
    const lane = new Lane<{ options?: object | undefined }>(
      { openWorkspace, roundTrip: 1 },
      isolation,
      () => true,
    );
    for (const context of contexts) {
      const { handles } = await lane.workspace(context);
      expect(handles.options).toBe(context.options);
      expect(open).toContain(handles);
      lane.prepare();
      await lane.clear({ reusable: true });
    }
    await lane.end();
    expect(count).toBe(opened);
  },
);
