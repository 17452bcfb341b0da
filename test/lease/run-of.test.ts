import { describe, expect, it } from 'vitest';
import { runOf, type RunEvent } from '../../src/index.js';
import { PlayedLease } from '../support/played-lease.js';

const ended = (events: RunEvent[]) => events.flatMap((event) => (event.type === 'ended' ? [event] : []));

describe('runOf', () => {
  it('returns the run behind an error of the callback', async () => {
    await using played = await PlayedLease.start();
    const error = new Error('mine');
    await played.run(() => Promise.reject(error));
    expect(runOf(error)).toMatchObject({ session: { session_id: 'session-1' }, released: 'reused' });
  });

  it('returns nothing for the reason of a signal that two runs shared, instead of the wrong run', async () => {
    await using one = await PlayedLease.start();
    await using two = await PlayedLease.start();
    two.service.script('acquire', { status: 200, json: two.session({ session_id: 'session-2' }) });
    const shared = new AbortController();
    const work = () => new Promise<never>(() => {});
    const runs = [one, two].map((played) => played.run(work, { signal: shared.signal }));
    await expect
      .poll(() => two.told('callback-started').length + one.told('callback-started').length)
      .toBe(2);
    const reason = new Error('stop');
    shared.abort(reason);
    const failures = await Promise.all(runs);
    expect(failures.map(({ error }) => error)).toEqual([reason, reason]);
    expect(runOf(reason)).toBeUndefined();
  });

  it.each([undefined, 'a text', 5])('returns nothing for the thrown value %j', (value) => {
    expect(runOf(value)).toBeUndefined();
  });
});

describe('the event ended', () => {
  it('has the summary of each of two runs that one signal aborted', async () => {
    await using played = await PlayedLease.start();
    const shared = new AbortController();
    played.service.script(
      'acquire',
      { status: 200, json: played.session({ session_id: 'session-1' }) },
      { status: 200, json: played.session({ session_id: 'session-2' }) },
    );
    const work = () => new Promise<never>(() => {});
    const runs = [1, 2].map(() => played.run(work, { signal: shared.signal }));
    await expect.poll(() => played.told('callback-started').length).toBe(2);
    shared.abort('a text');
    await Promise.all(runs);
    await played.pool.close();
    const sessions = ended(played.events).map(({ summary }) => summary.session?.session_id);
    expect(new Set(sessions)).toEqual(new Set(['session-1', 'session-2']));
    expect(ended(played.events)).toMatchObject([
      { status: 'failed', error: 'a text' },
      { status: 'failed', error: 'a text' },
    ]);
  });

  it('is the last event of a run that succeeds, with its summary and without an error', async () => {
    await using played = await PlayedLease.start();
    await played.run();
    const last = played.events.at(-1)!;
    expect(last).toMatchObject({
      type: 'ended',
      status: 'ok',
      summary: { released: 'reused', acquireAttempts: 1 },
    });
    expect(last).not.toHaveProperty('error');
  });

  it('is also emitted if no browser was leased', async () => {
    await using played = await PlayedLease.start();
    played.service.script('acquire', { status: 403, json: { code: 'forbidden', message: 'no' } });
    const { error } = await played.run();
    expect(ended(played.events)).toMatchObject([
      { status: 'failed', error, summary: { acquireAttempts: 1 } },
    ]);
    expect(ended(played.events)[0]!.summary).not.toHaveProperty('session');
  });
});
