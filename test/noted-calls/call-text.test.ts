import { expect, it } from 'vitest';
import { describeCall, describeFailure } from '../../src/noted-calls/call-text.js';

const page = { object: {}, role: 'page', locator: undefined } as const;
const locator = { object: { toString: () => "locator('#a')" }, role: 'locator', locator: undefined } as const;
const browser = { object: {}, role: 'browser', locator: undefined } as const;

it('shows the first line of an error, without what was typed', () => {
  const failure = (error: unknown, ...typed: unknown[]) => describeFailure(error, typed);
  expect(failure(new Error('Timeout\nfill("secret")'))).toBe('Timeout');
  expect(failure(new Error('Unknown key: "sec\nret"'), 'sec\nret')).toBe('Unknown key: "…"');
  expect(failure(new Error(String.raw`Unknown key: "a\"cret"`), 'a"cret')).toBe('Unknown key: "…"');
  expect(failure(new Error('Unknown key: "é" and e'), 'é', 'e')).toBe('Unknown key: "…" and e');
  expect(failure(new Error('no secret1, no secret2'), [{ value: 'secret1' }], { deep: ['secret2'] })).toBe(
    'no …, no …',
  );
  expect(failure(new Error('secret and secrets'), 'secret', 'secrets')).toBe('… and …');
  expect(failure(new Error('net::ERR at https://me:pw@shop/?token=abc&q=def'))).toBe(
    'net::ERR at https://[redacted]@shop/?token=[redacted]&q=[redacted]',
  );
  expect(failure(Object.assign(new TypeError('x'), { message: '' }))).toBe('TypeError');
  expect(failure('a reason')).toBe('a reason');
  expect(failure(new Error('x'.repeat(100_000))).length).toBeLessThan(310);
});

it('shows one short line for any arguments', () => {
  const text = (...args: unknown[]) => describeCall(page, 'click', args).text;
  expect(text('#a', { timeout: 1 })).toBe('page.click("#a")');
  expect(text('#a\n"b"')).toBe(String.raw`page.click("#a\n\"b\"")`);
  expect(text('x'.repeat(100_000)).length).toBeLessThan(310);
  expect(text({})).toBe('page.click(…)');
  expect(text(undefined)).toBe('page.click()');
  expect(text('https://shop/?token=abc')).toBe('page.click("https://shop/?token=[redacted]")');
  expect(describeCall(page, 'waitForURL', [/shop/]).text).toBe('page.waitForURL(/shop/)');
  expect(describeCall(page, 'waitForURL', [() => true]).text).toBe('page.waitForURL(…)');
  expect(describeCall(locator, 'fill', ['secret']).text).toBe("locator('#a').fill(…)");
  const files = Array.from({ length: 9 }, (_, index) => `C:\\secret\\${index}.txt`);
  expect(describeCall(locator, 'setInputFiles', [files]).text).toBe(
    `locator('#a').setInputFiles(["0.txt", "1.txt", "2.txt", "3.txt", "4.txt", …])`,
  );
});

it('shows nothing of the arguments of a method that it does not know', () => {
  expect(describeCall(browser, 'later', ['secret']).text).toBe('browser.later(…)');
});
