import { expect, it } from 'vitest';
import type { TimelineEntry } from '../../../src/recorder/timeline.js';
import { faults, usePerson, violations } from '../../local/pages/support.js';
import { facts, PICTURES, savePage, shownAt, useFolder, useMedia } from './support.js';

const made = useMedia();
const folder = useFolder();
const person = usePerson();

/** Milliseconds of two hours. */
const LONG = 7_200_000;

const SHORT: readonly TimelineEntry[] = [
  { at: 100, kind: 'mark', text: 'cart.spec › pays with a card that expired' },
  { at: 500, kind: 'call', text: 'page.click("#pay")', took: 300, status: 'page.click: Timeout' },
  { at: 900, kind: 'navigation', text: 'https://shop.example/', status: '200 OK' },
  { at: 1_500, kind: 'click', text: 'button#pay Pay' },
  { at: 1_600, kind: 'console', text: 'log: paid' },
  { at: 5_000, kind: 'failed', text: 'Error: no' },
  { at: 6_000, kind: 'connected', text: 'playwright' },
];

const KINDS = ['console', 'call', 'navigation', 'click', 'request-failed'] as const;

/** 10,000 events, among them 20 tests and 10 failures. */
const MANY = Array.from({ length: 10_000 }, (_, index): TimelineEntry => {
  const at = (index * LONG) / 10_000;
  if (index % 500 === 0) return { at, kind: 'mark', text: `test ${index / 500}` };
  if (index % 1_000 === 999) return { at, kind: 'failed', text: `failure ${(index - 999) / 1_000}` };
  return { at, kind: KINDS[index % 5]!, text: `event ${index} ${'word '.repeat(index % 30)}` };
});

const LONG_VIDEO = { ...PICTURES, pictures: { ...PICTURES.pictures!, length: LONG } };

const WITH_VIDEO = facts(SHORT, { result: 'failed', masked: 'covered', tags: { team: 'shop' } });
const LONGEST = facts(MANY, { ...LONG_VIDEO, result: 'failed' });

// axe needs minutes for 10,000 events. Pages with few events: test/shared/page.
it('has no accessibility violation with 1,000 events', { timeout: 300_000 }, async () => {
  const many = facts(MANY.slice(0, 1_000), { ...LONG_VIDEO, result: 'failed' });
  const page = await person.open(await savePage(folder, many, made.media), { reducedMotion: 'reduce' });
  await page.locator('#facts dt').first().waitFor();
  expect(await violations(page)).toEqual([]);
  expect(faults(page)).toEqual([]);
});

it('can be used with the keyboard only', async () => {
  const page = await person.open(await savePage(folder, WITH_VIDEO, made.media));
  const focused = () =>
    page.evaluate(
      () => document.activeElement!.getAttribute('aria-label') ?? document.activeElement!.textContent,
    );
  const reached: (string | null)[] = [];
  for (let press = 0; press < 40 && !reached.includes('Search the events'); press++) {
    await page.keyboard.press('Tab');
    reached.push(await focused());
    if (reached.at(-1) !== 'Show the failure') continue;
    await page.keyboard.press('Enter');
    await expect.poll(() => shownAt(page)).toBe(5);
  }
  const wanted = [
    'Position in the video',
    'Play',
    'Previous event',
    'Next event',
    'Show the failure',
    'Full screen',
  ];
  expect(reached).toEqual(expect.arrayContaining(wanted));
  await page.keyboard.type('click');
  const links = page.locator('#entries').getByRole('link');
  await expect.poll(() => links.count()).toBe(2);
  await links.last().focus();
  await page.keyboard.press('Enter');
  await expect.poll(() => shownAt(page)).toBe(1.5);
});

it('shows a moment of 10,000 events by a change of two rows, and few marks on the scrub bar', async () => {
  const page = await person.open(await savePage(folder, LONGEST, made.media));
  expect(await page.locator('#entries li').count()).toBe(10_000);
  const marks = await page.locator('#marks i').count();
  expect(marks).toBeGreaterThan(100);
  expect(marks).toBeLessThanOrEqual(400);
  // No test and no failure is left out.
  expect(await page.locator('#flags a').count()).toBe(30);
  const changes = await page.evaluate(async () => {
    let changes = 0;
    const observer = new MutationObserver((records) => (changes += records.length));
    observer.observe(document.getElementById('entries')!, {
      subtree: true,
      attributes: true,
      childList: true,
    });
    const position = document.getElementById('position') as HTMLInputElement;
    for (const at of [3_600_000, 10_000, 7_100_000]) {
      position.value = String(at);
      position.dispatchEvent(new Event('input'));
      await new Promise((resolve) => requestAnimationFrame(resolve));
    }
    return changes;
  });
  // Each seek ends one highlight and begins another.
  expect(changes).toBe(6);
  expect(await page.locator('[aria-current="true"]').textContent()).toContain('event 9861');
});

it('answers a search in time in proportion to the number of events', async () => {
  /** Milliseconds of a search for one of the last events, until the rows are in their places again. */
  const search = async (count: number) => {
    const url = await savePage(folder, facts(MANY.slice(0, count), LONG_VIDEO), made.media);
    const page = await person.open(url);
    return page.evaluate((last) => {
      const field = document.getElementById('search') as HTMLInputElement;
      const fill = (text: string) => {
        const began = performance.now();
        field.value = text;
        field.dispatchEvent(new Event('input'));
        return document.body.offsetHeight && performance.now() - began;
      };
      const first = fill(`event ${last - 5} `);
      fill('');
      return Math.min(first, fill(`event ${last - 7} `));
    }, count);
  };
  const [few, many] = [await search(1_000), await search(10_000)];
  // In proportion: 10 times; before, 100 times and more.
  expect(many).toBeLessThan(60 * Math.max(few, 10));
});

it('keeps the rows of 10,000 events while they are filtered and searched', async () => {
  const page = await person.open(await savePage(folder, LONGEST, made.media));
  const added = await page.evaluateHandle(() => {
    const added = { count: 0 };
    new MutationObserver((records) => {
      for (const { addedNodes } of records) added.count += addedNodes.length;
    }).observe(document.getElementById('entries')!, { childList: true });
    return added;
  });
  const shown = page.locator('#entries li:not([hidden])');
  // Locators of roles read all rows at each attempt.
  const filter = page.locator('#filters button', { hasText: 'Console' });
  await filter.click();
  await expect.poll(() => shown.count()).toBeLessThan(9_000);
  await page.locator('#search').fill('event 1234');
  await expect.poll(() => shown.count()).toBe(1);
  await page.locator('#search').fill('');
  await filter.click();
  await expect.poll(() => shown.count()).toBe(10_000);
  expect(await added.evaluate(({ count }) => count)).toBe(0);
});
