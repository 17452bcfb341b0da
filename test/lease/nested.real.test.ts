import { describe, expect, it } from 'vitest';
import { AcquireTimeoutError, BrowserPool, NestedLeaseError } from '../../src/index.js';
import { withPooledBrowser } from '../../src/puppeteer.js';
import { FakeService } from '../support/fake-service.js';
import { useLocalPool } from '../support/local.js';
import { realSession } from '../support/real-session.js';

describe('a lease inside a lease of the same pool', () => {
  const used = useLocalPool({ pools: [{ name: 'test', size: 2 }] });
  it('receives a browser while one is available', async () => {
    const { pool, local } = used;
    const nested = () => withPooledBrowser(pool, ({ session }) => session.session_id);
    const { value, session } = await withPooledBrowser(pool, nested);
    expect(value.value).not.toBe(session.session_id);
    expect(local.stats().leased).toBe(0);
  });

  it('ends with an error that names the outer lease when every lease waits for another browser', async () => {
    const { pool, local } = used;
    const outer: string[] = [];
    const run = () =>
      withPooledBrowser(pool, async ({ session }) => {
        outer.push(session.session_id);
        await expect.poll(() => outer.length).toBe(2);
        return withPooledBrowser(pool, () => 'never');
      });
    const outcomes = await Promise.allSettled([run(), run()]);
    const errors = outcomes.flatMap((outcome) =>
      outcome.status === 'rejected' ? [outcome.reason as unknown] : [],
    );
    // When the first call fails, its browser may be leased to the second.
    expect(errors.length).toBeGreaterThanOrEqual(1);
    for (const error of errors) {
      expect(error).toBeInstanceOf(NestedLeaseError);
      expect(outer).toContain((error as NestedLeaseError).outerSessionId);
      expect((error as NestedLeaseError).message).toContain((error as NestedLeaseError).outerSessionId);
    }
    // A browser that was leased for the failed call is released in the background.
    await expect.poll(() => local.stats().leased).toBe(0);
  });

  it('names the outer lease at the timeout if the service reports no counts', async () => {
    await using service = await FakeService.start();
    await using pool = new BrowserPool('test', service.options);
    const real = await realSession(used.local);
    service.script('acquire', { status: 200, json: real }, { status: 204 });
    service.script('pool', { status: 404 });
    const error = await withPooledBrowser(pool, () =>
      withPooledBrowser(pool, () => 'never', { acquireTimeout: 500, retry: { minTimeout: 100 } }),
    ).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(AcquireTimeoutError);
    expect((error as Error).message).toContain(`inside the lease of session ${String(real['session_id'])}`);
    await used.pool.release(real['session_id'] as string);
  });
});
