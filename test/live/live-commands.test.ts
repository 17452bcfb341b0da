import { expect, it } from 'vitest';
import { withLimits, type LiveCommand } from '../../src/live/live-commands.js';

function mouse(action: 'mouseMoved' | 'mousePressed', x: number): LiveCommand {
  return { type: 'mouse', action, x, y: 0, button: 'none', buttons: 0, clickCount: 0, modifiers: 0 };
}

/** A page that answers only when the test says so. */
function slowPage() {
  const performed: LiveCommand[] = [];
  let answer!: (outcome?: Promise<never>) => void;
  const answered = new Promise<void>((resolve) => (answer = resolve));
  const perform = withLimits((command) => (performed.push(command), answered));
  return { perform, performed, answer };
}

it('drops mouse moves before other input when the page does not respond, and input before a reload', () => {
  const { perform, performed } = slowPage();
  for (let x = 0; x < 10_000; x++) perform(mouse(x % 100 === 99 ? 'mousePressed' : 'mouseMoved', x));
  const presses = performed.filter((command) => 'action' in command && command.action === 'mousePressed');
  expect(presses).toHaveLength(100);
  expect(performed.length).toBeLessThan(150);
  for (let x = 0; x < 10_000; x++) perform(mouse('mousePressed', x));
  expect(performed.length).toBeLessThan(300);
  perform({ type: 'reload' });
  expect(performed.at(-1)).toEqual({ type: 'reload' });
});

it('continues after commands that failed', async () => {
  const { perform, performed, answer } = slowPage();
  for (let x = 0; x < 10_000; x++) perform(mouse('mousePressed', x));
  answer(Promise.reject(new Error('the page has just closed')));
  await expect.poll(() => (perform(mouse('mouseMoved', -1)), performed.at(-1))).toMatchObject({ x: -1 });
});
