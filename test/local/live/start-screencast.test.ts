import { expect, it } from 'vitest';
import { CdpFault } from '../../../src/local/browser/cdp-connection.js';
import { startScreencast } from '../../../src/local/browser/page-commands.js';

/** A simulated page: a real page changes its process too rarely for a test. */
function simulatePage(...answers: (Error | 'done')[]) {
  const asked: [string, object][] = [];
  const ask = async (method: string, params: object) => {
    asked.push([method, params]);
    const answer = answers[asked.length - 1];
    if (answer instanceof Error) throw answer;
    return {};
  };
  return { asked, ask };
}

const between = () => new CdpFault({ code: -32_000, message: 'Not attached to an active page' });

it('repeats the command while the page changes its process', async () => {
  const { asked, ask } = simulatePage(between(), between(), 'done');
  await startScreencast(ask, { format: 'jpeg' });
  const start = ['Page.startScreencast', { format: 'jpeg' }];
  expect(asked).toEqual([start, start, start]);
});

it.each([
  new CdpFault({ code: -32_601, message: 'There is no such method' }),
  new Error('The session is gone.'),
])('does not repeat the command after another error: %s', async (error) => {
  const { asked, ask } = simulatePage(error);
  await expect(startScreencast(ask, {})).rejects.toBe(error);
  expect(asked).toHaveLength(1);
});
