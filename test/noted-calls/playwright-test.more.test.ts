import { createRequire } from 'node:module';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { findBrowser } from '../../src/local.js';
import { Program } from '../support/program.js';

const PLAYWRIGHT = join(createRequire(import.meta.url).resolve('@playwright/test/package.json'), '../cli.js');

interface Facts {
  readonly steps: string[];
  readonly errors: string[];
  readonly notes: string[];
}

it('leaves the steps and errors of Playwright Test as they are, and notes its assertions', async () => {
  const config = 'test/noted-calls/suite/playwright.config.ts';
  const program = new Program([PLAYWRIGHT, 'test', '--config', config], {
    CHROME_PATH: await findBrowser(),
    NO_COLOR: '1',
  });
  const { stdout } = await program.ended;
  const reports = stdout.split('\n').filter((line) => line.startsWith('{'));
  const [without, noted] = reports.map((line) => JSON.parse(line) as Facts);
  expect(without!.steps.join('\n')).toMatch(/test\.step Log in :\d+ \n {2}pw:api Fill "me" :\d+/);
  expect(without!.errors).toHaveLength(2);
  expect(noted!.steps).toEqual(without!.steps);
  expect(noted!.errors).toEqual(without!.errors);
  expect(without!.notes).toEqual(['']);
  // The fixtures of the runner close the page and the browser afterwards.
  expect(noted!.notes.slice(0, 9)).toEqual([
    'page.setContent(…)',
    "locator('#email').fill(…)",
    'page.press("#email", "Tab")',
    "expect(locator('#email')).toHaveValue()",
    "expect(locator('p')).toContainText()",
    'page.title()',
    "locator('p').click()",
    "expect(locator('p')).toHaveText()",
    'page.click("#none")',
  ]);
});
