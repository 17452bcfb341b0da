import { expect, it } from 'vitest';
import * as playwright from '../../../src/playwright.js';
import { useLocalPool } from '../../support/local.js';
import { useSite } from '../../support/site.js';
import { LOGIN, useHandoffs } from './support.js';

const used = useLocalPool({ pools: [{ name: 'test', size: 1, viewport: { width: 800, height: 600 } }] });
const site = useSite((_request, response) => {
  response.writeHead(200, { 'content-type': 'text/html' }).end(LOGIN);
});
const { open, onEvent } = useHandoffs();

it('needs no mouse: a person logs in and answers with the keyboard', async () => {
  const { value } = await playwright.withPooledBrowser(
    used.pool,
    async ({ page, handoff }) => {
      await page.goto(site.url);
      const asked = handoff({ message: 'Log in.' });
      const view = await open();
      await view.locator('canvas[data-pictures]').waitFor();
      const press = async (...keys: string[]) => {
        for (const key of keys) await view.keyboard.press(key);
      };
      await view.getByRole('button', { name: 'Use the browser' }).focus();
      await press('Enter', 'Tab');
      await view.keyboard.type('Ada');
      // To the list, with its second option; over the files and the first buttons.
      await press('Tab', 'Tab', 'ArrowDown', 'Tab', 'Tab', 'Enter');
      await view.getByText('Your code?').waitFor();
      await press('Control+a');
      await view.keyboard.type('42');
      await press('Enter');
      await view.getByText('Your code?').waitFor({ state: 'hidden' });
      await press('Shift+Escape');
      await view.getByLabel('Note for the program').focus();
      await view.keyboard.type('By keys');
      await press('Tab', 'Enter');
      await view.getByRole('heading', { name: 'The hand-off is over' }).waitFor();
      const answer = await asked;
      const read = ['#name', '#role'].map((selector) => page.inputValue(selector));
      return { answer, values: await Promise.all(read), code: await page.textContent('#ask') };
    },
    { onEvent },
  );
  expect(value).toEqual({
    answer: { status: 'done', note: 'By keys' },
    values: ['Ada', 'Writer'],
    code: '42',
  });
});
