import type { Paint } from '../paint.js';

/** Runs as it stands, with the two variables that `serve` prints. */
const CODE = `
import { withPooledBrowser } from 'pooled-browser/playwright';

const { value, replays } = await withPooledBrowser('default', async ({ page }) => {
  await page.goto('https://example.com');
  return page.title();
});
console.log(value, replays);
`.trim();

export function nextSteps(paint: Paint): string {
  return [
    paint('bold', 'Next, your own code. In one terminal:'),
    '',
    '  npx pooled-browser serve',
    '',
    'In another, after the two export lines that it prints: node hello.mjs',
    '',
    ...CODE.split('\n').map((line) => (line === '' ? '' : `  ${paint('green', line)}`)),
    '',
    'With a service in the cloud it is the same code: only the two variables change.',
  ].join('\n');
}
