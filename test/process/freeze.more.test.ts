import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { reply, type Route } from '../support/fake-service.js';
import { PlayedLease } from '../support/played-lease.js';
import { variablesOf } from '../support/program.js';
import { start } from './support.js';

/** Milliseconds: longer than the wait of a poll, and than the time between two pings. */
const FREEZE = 3000;

it.each<[string, string, Route | undefined]>([
  ['waits for a browser', 'acquiring', 'acquire'],
  ['is in its callback', 'callback-started', undefined],
  ['releases its browser', 'callback-ended', 'release'],
])('finishes a call when the machine sleeps while it %s', async (_what, step, route) => {
  await using played = await PlayedLease.start();
  const { service } = played;
  let answer = () => {};
  const granted = { status: 200, json: played.session() };
  const json = route === 'acquire' ? granted : { status: 204 };
  if (route) service.script(route, (response) => void (answer = () => reply(response, json)));

  const program = start('suspended', [], variablesOf(service.options));
  const { child } = program;
  if (step === 'callback-ended') child.stdin!.write('go\n');
  await program.prints(new RegExp(step));
  if (route) await expect.poll(() => service.of(route).length).toBe(1);
  child.kill('SIGSTOP');
  await sleep(FREEZE / 2);
  // The request of the sleeping process is answered while it sleeps.
  answer();
  await sleep(FREEZE / 2);
  child.kill('SIGCONT');
  if (step !== 'callback-ended') child.stdin!.write('go\n');
  expect(await program.exit).toEqual([0, null]);
  expect(JSON.parse(program.stdout.trim().split('\n').at(-1)!)).toEqual({
    value: 'value',
    released: 'reused',
    acquireAttempts: 1,
  });
  expect(program.stdout).not.toContain('browser-lost');
  expect(service.released).toEqual(['session-1']);
});
