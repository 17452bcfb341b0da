import { once } from 'node:events';
import { expect, it } from 'vitest';
import { TOKEN } from '../support/fake-service.js';
import { PlayedLease } from '../support/played-lease.js';
import { start } from './support.js';

it('a lease that nobody can release any more is reported once on stderr, with what to do', async () => {
  await using played = await PlayedLease.start();
  const environment = { BROWSER_POOL_BASE_URL: played.service.baseUrl, BROWSER_POOL_ACCESS_TOKEN: TOKEN };
  const programs = ['idle', 'busy'].map((how) => start('forgotten', [how], environment));
  const errors = programs.map(({ child }) => {
    const texts: string[] = [];
    child.stderr!.on('data', (text) => texts.push(String(text)));
    return () => texts.join('');
  });
  await Promise.all(programs.map(({ says }) => says('leased')));
  await expect.poll(errors[0]!).toContain('Nothing is left to do');
  expect(
    errors[0]!().match(/Nothing is left to do, but the browser of session session-1.*release\(\)/g),
  ).toHaveLength(1);
  expect(errors[1]!()).toBe('');
  for (const { child } of programs) {
    child.kill();
    await once(child, 'close');
  }
});
