import { expect, it } from 'vitest';
import { CommandQueue } from '../../../src/local/live/command-queue.js';
import type { LiveCommand } from '../../../src/local/live/live-commands.js';

const mouse = (action: 'mouseMoved' | 'mousePressed', x: number): LiveCommand => ({
  type: 'mouse',
  action,
  x,
  y: 0,
  button: 'none',
  buttons: 0,
  clickCount: 0,
  modifiers: 0,
});

/** A browser that answers only when the test says so. */
function slowBrowser() {
  const performed: LiveCommand[] = [];
  let answer!: () => void;
  const answered = new Promise<void>((resolve) => (answer = resolve));
  const queue = new CommandQueue(async (command) => {
    performed.push(command);
    await answered;
  });
  return { queue, performed, answer };
}

it('drops the oldest of too many mouse moves, and keeps every press and the last move', async () => {
  const { queue, performed, answer } = slowBrowser();
  for (let x = 0; x < 100_000; x++) queue.add(mouse(x % 1000 === 999 ? 'mousePressed' : 'mouseMoved', x));
  expect(performed.length).toBeLessThan(100);
  answer();
  await expect.poll(() => performed.at(-1)).toMatchObject({ action: 'mousePressed', x: 99_999 });
  const presses = performed.filter(
    (command) => command.type === 'mouse' && command.action === 'mousePressed',
  );
  expect(presses).toHaveLength(100);
  expect(performed.length).toBeLessThan(400);
  const order = performed.map((command) => (command as { x: number }).x);
  expect(order).toEqual(order.toSorted((a, b) => a - b));
});

it('does not grow when the page does not respond', async () => {
  const { queue, performed, answer } = slowBrowser();
  for (let x = 0; x < 10_000; x++) queue.add(mouse('mousePressed', x));
  answer();
  await expect.poll(() => performed.length).toBeGreaterThan(200);
  expect(performed.length).toBeLessThan(400);
});

it('sends a reload before input to which the page does not respond', () => {
  const { queue, performed } = slowBrowser();
  for (let x = 0; x < 1000; x++) queue.add(mouse('mouseMoved', x));
  queue.add({ type: 'reload' });
  expect(performed.at(-1)).toEqual({ type: 'reload' });
});

it('continues after a failed command', async () => {
  const performed: LiveCommand[] = [];
  const queue = new CommandQueue((command) => {
    performed.push(command);
    return Promise.reject(new Error('the page has just closed'));
  });
  for (let x = 0; x < 100; x++) queue.add(mouse('mousePressed', x));
  await expect.poll(() => performed.length).toBe(100);
});
