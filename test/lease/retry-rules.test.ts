import { describe, expect, it } from 'vitest';
import { isOutage, judge, NoBrowserYet } from '../../src/lease/retry-rules.js';
import { PoolConnectionError, PoolResponseError, PoolServiceError } from '../../src/index.js';
import { BrowserPool } from '../../src/service/browser-pool.js';
import { FakeService, type Answer } from '../support/fake-service.js';
import { breakOff, rejection, reset } from '../service/support.js';

/** What the client throws for this answer. */
async function failure(answer: Answer): Promise<Error> {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  service.script('acquire', answer);
  return await rejection(pool.acquire());
}

/** What the client throws where nobody listens. */
async function unreachable(): Promise<Error> {
  const service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  await service.close();
  return await rejection(pool.acquire());
}

const withCode = (status: number, code: string, more: object = {}): Answer => ({
  status,
  json: { code, message: 'a message', ...more },
});

describe('what an answer means for the next request', () => {
  it.each([
    [400, 'final'],
    [401, 'final'],
    [403, 'final'],
    [404, 'final'],
    [408, 'ask-again'],
    [409, 'ask-again'],
    [422, 'final'],
    [429, 'ask-again'],
    [500, 'unknown'],
    [502, 'unknown'],
    [503, 'ask-again'],
    [504, 'ask-again'],
  ])('%i: %s', async (status, verdict) => {
    const error = await failure({ status });
    expect(error).toBeInstanceOf(PoolServiceError);
    expect(judge(error, false)).toBe(verdict);
  });

  it('204: ask again', () => {
    expect(judge(new NoBrowserYet(), true)).toBe('ask-again');
  });

  it('none that came: ask again where nobody listened, unknown where somebody did', async () => {
    const [refused, lost] = [await unreachable(), await failure(reset)];
    for (const error of [refused, lost]) expect(error).toBeInstanceOf(PoolConnectionError);
    expect([judge(refused, false), judge(lost, false)]).toEqual(['ask-again', 'unknown']);
  });

  it('one that can not be read: final, as is any other failure', async () => {
    const error = await failure(breakOff('{"created'));
    expect(error).toBeInstanceOf(PoolResponseError);
    for (const final of [error, new TypeError('a bug'), 'a text']) expect(judge(final, false)).toBe('final');
  });
});

describe('a 409 for a lease with a name', () => {
  it.each([
    ['none_available', 'ask-again'],
    ['at_capacity', 'ask-again'],
    ['pool_exhausted', 'ask-again'],
    ['timeout', 'ask-again'],
    ['timed_out', 'ask-again'],
    ['pool_empty', 'ask-again'],
    ['BUSY', 'ask-again'],
    ['conflict', 'final'],
    ['name_unavailable', 'final'],
    ['unavailable_name', 'final'],
  ])('with the code %s: %s', async (code, verdict) => {
    const error = await failure(withCode(409, code));
    expect(judge(error, true)).toBe(verdict);
    // Without a name there is nothing to be in conflict with.
    expect(judge(error, false)).toBe('ask-again');
  });

  it('may tell by its details, or by the error behind it, that none is available', async () => {
    const none = { code: 'none_available', message: 'none' };
    for (const more of [{ details: [none] }, { inner_error: none }])
      expect(judge(await failure(withCode(409, 'conflict', more)), true)).toBe('ask-again');
    for (const more of [{ details: [{ ...none, code: 'x' }] }, { details: [] }, {}])
      expect(judge(await failure(withCode(409, 'conflict', more)), true)).toBe('final');
  });
});

describe('an outage', () => {
  it.each([
    [400, false],
    [404, false],
    [408, false],
    [409, false],
    [428, false],
    [429, true],
    [431, false],
    [500, true],
    [503, true],
    [504, true],
  ])('%i: %j', async (status, expected) => {
    expect(isOutage(await failure({ status }))).toBe(expected);
  });

  it('is a service that can not be reached, and no answer that there is no browser', async () => {
    expect(isOutage(await unreachable())).toBe(true);
    expect(isOutage(new NoBrowserYet())).toBe(false);
    expect(isOutage(undefined)).toBe(false);
  });
});
