import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { FakeService } from '../support/fake-service.js';
import { expectRefusal, hasTerminals, runHere, startAtTerminal, startClient } from './support.js';

let service: FakeService;

beforeEach(async () => {
  service = await FakeService.start();
  onTestFinished(() => service.close());
});

const flushes = () => service.of('flush').length;

describe.runIf(hasTerminals)('flush at a terminal', () => {
  const QUESTION = /Destroy all idle browsers of pool scrapers at http:\S+, for all its users\? \[y\/N\] /;
  const FLUSHED = { code: 0, text: 'Flushed scrapers', count: 1 };
  const REFUSED = { code: 1, text: 'pooled-browser: Nothing was flushed.', count: 0 };

  it.each([
    ['y\n', FLUSHED],
    ['YES\n', FLUSHED],
    [' yes \n', FLUSHED],
    ['n\n', REFUSED],
    ['\n', REFUSED],
    ['yeah\n', REFUSED],
    // The end of the input.
    ['\x04', REFUSED],
    // Ctrl-C.
    ['\x03', { code: 130, text: '', count: 0 }],
  ])('asks first, and flushes the pool only after a clear yes: %j', async (typed, { code, text, count }) => {
    const flush = startAtTerminal(['flush', 'scrapers'], service.options);
    await flush.prints(QUESTION);
    expect(service.requests).toEqual([]);
    flush.child.stdin!.write(typed);
    expect(await flush.ended).toMatchObject({ code, stdout: expect.stringContaining(text) as string });
    expect(flushes()).toBe(count);
  });

  it('does not ask with --yes', async () => {
    const { code, stdout } = await startAtTerminal(['flush', 'scrapers', '--yes'], service.options).ended;
    expect(code).toBe(0);
    expect(stdout).not.toContain('[y/N]');
    expect(flushes()).toBe(1);
  });
});

it('requires --yes without a terminal, and sends nothing without --yes', async () => {
  const flush = startClient(['flush', 'scrapers'], service.options, { stdin: 'pipe' });
  flush.child.stdin!.end('y\n');
  expectRefusal(await flush.ended, 'To answer yes, pass --yes.');
  expect(service.requests).toEqual([]);
});

it('flushes with --yes, and prints JSON with --json', async () => {
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
