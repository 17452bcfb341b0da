import { expect, it } from 'vitest';
import { CdpFault } from '../../../src/local/browser/cdp-connection.js';
import { startScreencast } from '../../../src/local/browser/start-screencast.js';

/** A page that answers as its script says; the real one is seldom met just while it changes its process. */
function played(...answers: (Error | 'done')[]) {
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

it('asks a page again that is just changing its process', async () => {
  const { asked, ask } = played(between(), between(), 'done');
  await startScreencast(ask, { format: 'jpeg' });
  const start = ['Page.startScreencast', { format: 'jpeg' }];
  expect(asked).toEqual([start, start, start]);
});

it.each([
  new CdpFault({ code: -32_601, message: 'There is no such method' }),
  new Error('The session is gone.'),
])('asks once where that is of no use: %s', async (error) => {
  const { asked, ask } = played(error);
  await expect(startScreencast(ask, {})).rejects.toBe(error);
  expect(asked).toHaveLength(1);
});
