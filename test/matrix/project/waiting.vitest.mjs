import { test } from 'pooled-browser/vitest';

// The pool of this suite takes longer to lease a browser. Vitest before 4.1 counts the wait as time of the test.
test('waits without spending its time', { timeout: 10_000 }, async ({ page, expect }) => {
  expect(await page.evaluate('6 * 7')).toBe(42);
});
