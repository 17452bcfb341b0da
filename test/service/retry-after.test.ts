import { expect, it } from 'vitest';
import type { PoolServiceError } from '../../src/shared/service-errors.js';
import { BrowserPool } from '../../src/service/browser-pool.js';
import { FakeService } from '../support/fake-service.js';
import { rejection } from './support.js';

/** Returns `retryAfter` of an error, from a service with its own clock. */
async function read(value: string, date?: string): Promise<number | undefined> {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  const headers = { 'retry-after': value, ...(date && { date }) };
  service.script('flush', { status: 503, headers });
  return (await rejection<PoolServiceError>(pool.flush())).retryAfter;
}

const CLOCK = 'Wed, 01 Jan 2020 00:00:00 GMT';

it.each([
  ['0', 0],
  ['3', 3000],
  ['1000000000', 1e12],
])('reads %s seconds', async (value, expected) => {
  expect(await read(value)).toBe(expected);
});

it('compares a date with the clock of the service, which may be years off', async () => {
  expect(await read('Wed, 01 Jan 2020 00:00:30 GMT', CLOCK)).toBe(30_000);
});

it('compares a date with the local clock if the service sends no date', async () => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  service.script('flush', (response) => {
    response.sendDate = false;
    response.writeHead(503, { 'retry-after': new Date(Date.now() + 60_000).toUTCString() }).end();
  });
  const { retryAfter } = await rejection<PoolServiceError>(pool.flush());
  expect(retryAfter).toBeGreaterThan(50_000);
  expect(retryAfter).toBeLessThanOrEqual(60_000);
});

it.each(['', 'soon', '-5', '1e9', '5.5', '0x10', 'Tue, 31 Dec 2019 23:59:59 GMT', 'NaN', 'in 2099 days'])(
  'ignores %j',
  async (value) => {
    expect(await read(value, CLOCK)).toBeUndefined();
  },
);
