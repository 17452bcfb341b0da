import { expect, it } from 'vitest';
import * as playwright from '../../../src/playwright.js';
import { faults } from '../../local/pages/support.js';
import { useLocalPool } from '../../support/local.js';
import { useSite } from '../../support/site.js';
import { answer, clickAt, control, LOGIN, useHandoffs } from './support.js';

const used = useLocalPool({ pools: [{ name: 'test', size: 1, viewport: { width: 800, height: 600 } }] });
const site = useSite((_request, response) => {
  response.writeHead(200, { 'content-type': 'text/html' }).end(LOGIN);
});
const { open, onEvent } = useHandoffs();

it('lets a person log in with mouse and keyboard, and returns the answer and the note', async () => {
  const run = playwright.withPooledBrowser(
    used.pool,
    async ({ page, handoff }) => {
      await page.goto(site.url);
      const boxes = Object.fromEntries(
        await Promise.all(
          ['name', 'role', 'file', 'ask', 'alert', 'open', 'go'].map(async (id) => {
            const { x, y, width, height } = (await page.locator(`#${id}`).boundingBox())!;
            return [id, { x: x + width / 2, y: y + height / 2 }] as const;
          }),
        ),
      );
      const width = await page.evaluate(() => innerWidth);
      const asked = handoff({ message: 'Log in, <b>please</b>.' });
      const view = await open();
      expect(await view.getByText('Log in, <b>please</b>.').isVisible()).toBe(true);
      const click = (id: string) => clickAt(view, boxes[id]!, width);
      await control(view);
      await click('name');
      await view.keyboard.type('Ada');
      await view.keyboard.press('Tab');
      await view.keyboard.type('secret');
      // The list.
      await click('role');
      await view.getByLabel('Options of the list in the page').selectOption('Admin');
      // Dialogs.
      await click('ask');
      await view.getByText('Your code?').waitFor();
      await view.getByLabel('Answer').fill('1234');
      await view.getByRole('button', { name: 'OK' }).click();
      await view.getByText('Your code?').waitFor({ state: 'hidden' });
      await click('alert');
      await view.getByText('<b>Careful</b>').waitFor();
      await view.keyboard.press('Enter');
      await view.getByText('<b>Careful</b>').waitFor({ state: 'hidden' });
      // Files.
      await click('file');
      const files = [
        { name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from('first') },
        { name: 'b.bin', mimeType: 'image/png', buffer: Buffer.alloc(3_000_000, 7) },
      ];
      await view.getByLabel('Files for the page').setInputFiles(files);
      await view.getByLabel('Files for the page').waitFor({ state: 'hidden' });
      await click('go');
      // The click must have arrived.
      await click('open');
      await view.getByRole('tab').nth(1).waitFor();
      await answer(view, 'Done', ' As Ada. ');
      expect(faults(view)).toEqual([]);
      const result = await asked;
      const values = await page.evaluate(async () => ({
        title: document.title,
        fields: [...document.querySelectorAll('input,select')]
          .slice(0, 3)
          .map((one) => (one as HTMLInputElement).value),
        buttons: [...document.querySelectorAll('button')].slice(0, 2).map((one) => one.textContent),
        files: await Promise.all(
          [...document.querySelector<HTMLInputElement>('#file')!.files!].map(async (file) => [
            file.name,
            file.type,
            file.size,
            (await file.text()).slice(0, 5),
          ]),
        ),
      }));
      return { result, values };
    },
    { onEvent },
  );
  expect((await run).value).toEqual({
    result: { status: 'done', note: 'As Ada.' },
    values: {
      title: 'Welcome Ada',
      fields: ['Ada', 'secret', 'Admin'],
      buttons: ['1234', 'told'],
      files: [
        ['a.txt', 'text/plain', 5, 'first'],
        ['b.bin', 'image/png', 3_000_000, '\u0007'.repeat(5)],
      ],
    },
  });
});
