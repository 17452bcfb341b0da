import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { FakeService } from '../support/fake-service.js';
import { hasTerminals, startAtTerminal, startClient } from './support.js';

let service: FakeService;

beforeEach(async () => {
  const started = await FakeService.start();
  service = started;
  onTestFinished(() => started.close());
});

const flushes = () => service.of('flush').length;

describe.runIf(hasTerminals)('flush at a terminal', () => {
  const QUESTION = /Destroy all idle browsers of pool scrapers at http:\S+, for all its users\? \[y\/N\] /;

  async function answer(typed: string) {
    const flush = startAtTerminal(['flush', 'scrapers'], service.options);
    await flush.prints(QUESTION);
    expect(service.requests).toEqual([]);
    flush.child.stdin!.write(typed);
    return flush.ended;
  }

  it.each(['y\n', 'YES\n', ' yes \n'])('flushes the pool after the answer %j', async (typed) => {
    const { code, stdout } = await answer(typed);
    expect(code).toBe(0);
    expect(stdout).toContain('Flushed scrapers');
    expect(flushes()).toBe(1);
  });

  it.each([
    ['n\n', 'no'],
    ['\n', 'nothing'],
    ['yeah\n', 'an unclear answer'],
    ['\x04', 'the end of the input'],
  ])('flushes nothing after %j: %s', async (typed) => {
    const { code, stdout } = await answer(typed);
    expect(code).toBe(1);
    expect(stdout).toContain('pooled-browser: Nothing was flushed.');
    expect(flushes()).toBe(0);
  });

  it('flushes nothing after Ctrl-C, and ends with 130', async () => {
    expect(await answer('\x03')).toMatchObject({ code: 130 });
    expect(flushes()).toBe(0);
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
  const { code, stdout, stderr } = await flush.ended;
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain('To flush without confirmation, pass --yes.');
  expect(service.requests).toEqual([]);
});

it('flushes with --yes, and prints JSON with --json', async () => {
  const { code, stdout, stderr } = await startClient(
    ['flush', 'scrapers', '--yes', '--json'],
    service.options,
  ).ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(JSON.parse(stdout)).toEqual({ flushed: true, pool: 'scrapers' });
  expect(flushes()).toBe(1);
});
