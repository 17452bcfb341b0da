import { expect, it } from 'vitest';
import { PlayedLease } from '../../support/played-lease.js';

const large = 'x'.repeat(1000);

/** Sends the commands within a callback; returns the methods of the calls that the lease reports as pending at its end. */
async function pendingAfter(commands: readonly (object | string)[], answers: readonly object[]) {
  await using played = await PlayedLease.start();
  const { onText } = played.browser;
  let sent = 0;
  played.browser.onText = (text, client) => {
    if (++sent > commands.length) return onText(text, client);
    // The answers follow the last command.
    if (sent === commands.length)
      for (const answer of [...answers, LAST]) client.send(JSON.stringify(answer));
  };
  const { error } = await played.run(async () => {
    const { socket } = played.requests[0]!;
    const answered = new Promise<void>((resolve) => {
      socket.onMessage = (data) => {
        if (String(data) === JSON.stringify(LAST)) resolve();
      };
    });
    for (const command of commands)
      socket.send(typeof command === 'string' ? command : Buffer.from(JSON.stringify(command)));
    await answered;
  });
  expect(error).toBeUndefined();
  return played.told('pending-calls').flatMap(({ methods }) => methods);
}

/** An event, which ends no call. */
const LAST = { method: 'Page.loadEventFired', params: { id: 7 } };
const FIRST = { id: 1, method: 'Target.setAutoAttach' };

it.each<[string, { method: string }, object]>([
  [
    'Playwright',
    { id: 7, method: 'Page.navigate', params: { large }, sessionId: 'S' } as { method: string },
    { id: 7, result: { large }, sessionId: 'S' },
  ],
  [
    'Puppeteer over CDP',
    { method: 'Page.navigate', params: { large }, id: 7, sessionId: 'S' } as { method: string },
    { id: 7, error: {}, sessionId: 'S' },
  ],
  [
    'Puppeteer over BiDi',
    { id: 7, method: 'browsingContext.navigate', params: {} } as { method: string },
    { type: 'success', id: 7 },
  ],
  [
    'a failed BiDi command',
    { id: 7, method: 'script.evaluate', params: {} } as { method: string },
    { error: 'no such frame', id: 7 },
  ],
])('a command is pending until its response: %s', async (_who, command, response) => {
  const commands = [FIRST, JSON.stringify(command)];
  const first = { id: 1, result: {} };
  expect(await pendingAfter(commands, [first])).toEqual([command.method]);
  expect(await pendingAfter(commands, [first, response])).toEqual([]);
});

it('reports no command that a library sends by itself, and none to a service whose responses can not be read', async () => {
  const commands = [
    { id: 1, method: 'Page.navigate' },
    { id: 2, method: 'Runtime.releaseObject' },
  ];
  expect(await pendingAfter(commands, [{ id: 1, result: {} }])).toEqual([]);
  expect(await pendingAfter(commands, [{ result: {}, id: 1 }])).toEqual([]);
});
