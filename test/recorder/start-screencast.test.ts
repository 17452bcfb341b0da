import { expect, it } from 'vitest';
import { CdpFault } from '../../src/net/cdp-connection.js';
import { startScreencast } from '../../src/recorder/screencast.js';

const between = new CdpFault({ code: -32_000, message: 'Not attached to an active page' });
const unknown = new CdpFault({ code: -32_601, message: 'There is no such method' });
const gone = new Error('The session is gone.');

// A simulated page: a real page changes its process too rarely for a test.
it.each([
  ['repeats the command while the page changes its process', [between, between], undefined, 3],
  ['does not repeat the command after another refusal', [unknown], unknown, 1],
  ['does not repeat the command without a session', [gone], gone, 1],
])('%s', async (_what, answers, error, count) => {
  const asked: [string, object][] = [];
  const ask = async (method: string, params: object) => {
    asked.push([method, params]);
    const answer = answers[asked.length - 1];
    if (answer) throw answer;
    return {};
  };
  const outcome = await startScreencast({ ask }, { format: 'jpeg' }).catch((reason: unknown) => reason);
  expect(outcome).toBe(error);
  expect(asked).toHaveLength(count);
  for (const command of asked) expect(command).toEqual(['Page.startScreencast', { format: 'jpeg' }]);
});
