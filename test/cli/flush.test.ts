import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { FakeService } from '../support/fake-service.js';
import { expectRefusal, runHere, typeHere } from './support.js';

let service: FakeService;

beforeEach(async () => {
  service = await FakeService.start();
  onTestFinished(() => service.close());
});

const flushes = () => service.of('flush').length;
const QUESTION = /Destroy all idle browsers of pool scrapers at http:\S+, for all its users\?/;

it.each(['y\n', 'YES\n', ' yes \n'])(
  'asks first, and flushes the pool after a clear yes: %j',
  async (typed) => {
    typeHere(typed);
    const { code, stdout, stderr } = await runHere(['flush', 'scrapers'], service.options);
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(QUESTION) as string });
    expect(stdout).toContain('Flushed scrapers');
    expect(flushes()).toBe(1);
  },
);

// The last one is the end of the input.
it.each(['n\n', '\n', 'yeah\n', ''])('flushes nothing after another answer: %j', async (typed) => {
  typeHere(typed);
  const { code, stdout, stderr } = await runHere(['flush', 'scrapers'], service.options);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(QUESTION);
  expect(stderr).toContain('pooled-browser: Nothing was flushed.');
  expect(service.requests).toEqual([]);
});

it('requires --yes without a terminal, and sends nothing without --yes', async () => {
  const ended = await runHere(['flush', 'scrapers'], service.options);
  expectRefusal(ended, 'To answer yes, pass --yes.');
  expect(ended.stderr).toMatch(QUESTION);
  expect(service.requests).toEqual([]);
});

it('does not ask with --yes, and prints JSON with --json', async () => {
  typeHere('n\n');
  const args = ['flush', 'scrapers', '--yes', '--json'];
  const { code, stdout, stderr } = await runHere(args, service.options);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(JSON.parse(stdout)).toEqual({ flushed: true, pool: 'scrapers' });
  expect(flushes()).toBe(1);
});

it('refuses a pool that ends with the command', async () => {
  const local = { baseUrl: 'local', token: service.options.token };
  expectRefusal(await runHere(['flush', 'scrapers', '--yes'], local), 'The address is local');
});
