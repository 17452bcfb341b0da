import { describe, expect, it } from 'vitest';
import type { RunEvent } from '../../../src/index.js';
import { DRIVERS, type AnyPage } from '../../support/drivers.js';
import { titled, useLocalPool } from '../../support/local.js';

const used = useLocalPool();
const NEVER = 'new Promise(() => {})';

describe.each(DRIVERS)('$name', ({ name, run, openPage }) => {
  const runWith = async (fn: (page: AnyPage) => unknown) => {
    const warnings: unknown[] = [];
    const onEvent = (event: RunEvent) =>
      void (event.type === 'pending-calls' && warnings.push(event.message));
    const work = async (lease: Parameters<typeof openPage>[0]) => {
      await openPage(lease);
      await lease.page.goto(titled('a page'));
      await fn(lease.page);
    };
    const { session, released } = await run(used.pool, work, { onEvent });
    return { id: session.session_id, released, warnings };
  };

  it('reports a call that is pending when its lease ends, for which an await is missing', async () => {
    let pending!: Promise<unknown>;
    const { id, released, warnings } = await runWith((page) => {
      pending = page.evaluate(NEVER).catch((error: unknown) => error);
    });
    expect(warnings).toStrictEqual([
      expect.stringMatching(`^1 call had no result when the lease of session ${id} ended .*forget await`),
    ]);
    expect(released).toBe('reused');
    const { message } = (await pending) as Error;
    // Puppeteer's own error has no place for a reason.
    if (name.startsWith('Playwright')) expect(message).toContain(`The lease of session ${id} has ended`);
  });

  it('reports nothing if every call was awaited', async () => {
    const { released, warnings } = await runWith(async (page) => page.title());
    expect({ released, warnings }).toStrictEqual({ released: 'reused', warnings: [] });
  });
});
