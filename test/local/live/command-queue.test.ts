import { expect, it } from 'vitest';
import { CommandQueue } from '../../../src/local/live/command-queue.js';
import type { LiveCommand } from '../../../src/local/live/live-commands.js';

function mouse(action: 'mouseMoved' | 'mousePressed', x: number): LiveCommand {
  return { type: 'mouse', action, x, y: 0, button: 'none', buttons: 0, clickCount: 0, modifiers: 0 };
}

/** A browser that answers only when the test says so. */
function slowBrowser() {
  const performed: LiveCommand[] = [];
  let answer!: (outcome?: Promise<never>) => void;
  const answered = new Promise<void>((resolve) => (answer = resolve));
  const queue = new CommandQueue((command) => (performed.push(command), answered));
  return { queue, performed, answer };
}

it('drops the oldest of too many mouse moves, and keeps every press and the last move', async () => {
  const { queue, performed, answer } = slowBrowser();
  for (let x = 0; x < 20_000; x++) queue.add(mouse(x % 200 === 199 ? 'mousePressed' : 'mouseMoved', x));
  expect(performed.length).toBeLessThan(100);
  answer();
  await expect.poll(() => performed.at(-1)).toMatchObject({ action: 'mousePressed', x: 19_999 });
  const presses = performed.filter((command) => 'action' in command && command.action === 'mousePressed');
  expect(presses).toHaveLength(100);
  expect(performed.length).toBeLessThan(400);
  const order = performed.map((command) => (command as { x: number }).x);
  expect(order).toEqual(order.toSorted((a, b) => a - b));
});

it('does not grow when the page does not respond, and continues after commands that failed', async () => {
  const { queue, performed, answer } = slowBrowser();
  for (let x = 0; x < 10_000; x++) queue.add(mouse('mousePressed', x));
  answer(Promise.reject(new Error('the page has just closed')));
  await expect.poll(() => performed.length).toBeGreaterThan(200);
  expect(performed.length).toBeLessThan(400);
});

it('sends a reload before input to which the page does not respond', () => {
  const { queue, performed } = slowBrowser();
  for (let x = 0; x < 1000; x++) queue.add(mouse('mouseMoved', x));
  queue.add({ type: 'reload' });
  expect(performed.at(-1)).toEqual({ type: 'reload' });
});
