import { expect, it } from 'vitest';
import type { PoolServiceError } from '../../src/shared/service-errors.js';
import { BrowserPool } from '../../src/service/browser-pool.js';
import { FakeService } from '../support/fake-service.js';
import { rejection } from './support.js';

/** What an error says of a `Retry-After`, at a service with a clock of its own. */
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

it('reads a date against the clock of the service, which may be years off', async () => {
  expect(await read('Wed, 01 Jan 2020 00:00:30 GMT', CLOCK)).toBe(30_000);
});

it('reads a date against its own clock where the service tells none', async () => {
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
