import { expect, it } from 'vitest';
import type { SavedFacts } from '../../../src/recorder/page/replay-file.js';
import type { TimelineEntry } from '../../../src/recorder/timeline.js';
import { faults, usePerson } from '../../local/pages/support.js';
import {
  COLOURS,
  expectColour,
  facts,
  PICTURES,
  savePage,
  shownAt,
  useFolder,
  useMedia,
  watchRequests,
} from './support.js';

const made = useMedia();
const folder = useFolder();
const person = usePerson();

const TIMELINE: readonly TimelineEntry[] = [
  { at: 0, kind: 'connected', text: 'playwright' },
  { at: 500, kind: 'mark', text: 'shop.spec.ts › cart › pays' },
  { at: 700, kind: 'call', text: 'page.goto("https://shop.example/")', took: 240 },
  { at: 800, kind: 'navigation', text: 'https://shop.example/', status: '200 OK' },
  { at: 2_500, kind: 'command', text: 'Page.navigate https://shop.example/cart' },
  { at: 3_000, kind: 'dialog', text: 'alert: Really?', status: 'accepted' },
  { at: 3_500, kind: 'download', text: 'bill.pdf https://shop.example/bill.pdf' },
  {
    at: 4_500,
    kind: 'call',
    text: 'page.click("#pay")',
    took: 1_700,
    status: 'page.click: Timeout 1500ms exceeded.',
  },
  { at: 6_200, kind: 'failed', text: 'Error: the cart is empty' },
  { at: 8_000, kind: 'recording-ended', text: 'The lease ended.' },
];

it('has the name of the only test, and shows pool, service, session, tags and result', async () => {
  const more = { leaseName: 'worker-1', tags: { team: 'shop', worker: '1' }, result: 'failed' as const };
  const page = await person.open(await savePage(folder, facts(TIMELINE, more), made.media));
  await page.getByRole('heading', { level: 1, name: 'shop.spec.ts › cart › pays' }).waitFor();
  expect(await page.title()).toBe('shop.spec.ts › cart › pays · Replay');
  const shown = page.locator('#facts');
  for (const fact of ['Failed', 'worker-1', 'team=shop, worker=1', 'scrapers', 'kernel', '0:08.0'])
    await shown.getByText(fact, { exact: true }).waitFor();
  await shown.getByText('f3c1455d0a6b4d0f9c1455d0a6b4d0f9', { exact: true }).waitFor();
  expect(await page.getByRole('banner').getByRole('status').textContent()).toBe('Failed');
});

it.each([
  ['the name of the lease, if it has several tests', 2, 'worker-1', 'worker-1'],
  ['the name of the lease, if it has no test', 0, 'worker-1', 'worker-1'],
  ['the pool, if the lease has no name', 0, undefined, 'Lease of scrapers'],
])('is called by %s', async (_, tests, leaseName, title) => {
  const marks = Array.from({ length: tests }, (_, at): TimelineEntry => ({ at, kind: 'mark', text: 'a' }));
  const page = await person.open(await savePage(folder, facts(marks, { leaseName }), made.media));
  await page.getByRole('heading', { level: 1, name: title, exact: true }).waitFor();
});

it('lists calls with their time, failed ones with their message, and tests as headings', async () => {
  const page = await person.open(await savePage(folder, facts(TIMELINE), made.media));
  await page.getByRole('link', { name: 'Call page.goto("https://shop.example/") 240 ms' }).waitFor();
  const failed = page.getByRole('link', { name: /Call page\.click\("#pay"\) 1\.7 s page\.click: Timeout/ });
  const message = failed.getByText('page.click: Timeout 1500ms exceeded.');
  const red = (one: typeof message) => one.evaluate((element) => getComputedStyle(element).color);
  expect(await red(message)).toBe(await red(page.locator('li.failed .what')));
  expect(await red(message)).not.toBe(await red(failed));
  const heading = page.getByRole('heading', { level: 3, name: /shop\.spec\.ts › cart › pays/ });
  expect(await heading.getByRole('link').getAttribute('href')).toBe('#t=0.5');
  await page.getByRole('link', { name: 'Dialog accepted alert: Really?' }).waitFor();
  for (const [name, count] of [
    ['Errors', 2],
    ['Tests and steps', 1],
    ['Calls', 2],
    ['Pages', 3],
  ] as const) {
    const filter = page.getByRole('button', { name: `${name} ${count}`, exact: true });
    const links = page.locator('#entries').getByRole('link');
    const all = await links.count();
    await filter.click();
    await expect.poll(() => links.count()).toBe(all - count);
    await filter.click();
  }
});

it('finds events by their text, and shows how many', async () => {
  const page = await person.open(await savePage(folder, facts(TIMELINE), made.media));
  const links = page.locator('#entries').getByRole('link');
  const search = page.getByRole('searchbox', { name: 'Search the events' });
  await search.fill('PAGE.click timeout');
  await expect.poll(() => links.count()).toBe(1);
  expect(await page.getByRole('status').allTextContents()).toContain('1 of 10');
  await search.fill('no such event');
  await page.getByText('No event matches.').waitFor();
  // Typed letters are no commands of the player.
  expect(await page.getByRole('button', { name: 'Play' }).isVisible()).toBe(true);
  await search.fill('');
  await expect.poll(() => links.count()).toBe(10);
});

it('opens at the moment that the address names, whose event is highlighted and in sight, and follows changes', async () => {
  const many = Array.from({ length: 300 }, (_, index): TimelineEntry => {
    return { at: index * 25, kind: 'console', text: `log: line ${index} ${'word '.repeat(index % 40)}` };
  });
  const url = await savePage(folder, facts(many), made.media);
  const page = await person.open(`${url}#t=5`);
  for (const [line, time] of [
    [200, '5.0'],
    [12, '0.3'],
    [280, '7.0'],
  ] as const) {
    await page.evaluate((time) => (location.hash = `t=${time}`), time);
    const link = page.getByRole('link', { name: new RegExp(`log: line ${line}\\b`) });
    await expect.poll(() => link.getAttribute('aria-current')).toBe('true');
    expect(await page.locator('[aria-current="true"]').count()).toBe(1);
    const list = (await page.locator('#entries').boundingBox())!;
    const isInSight = async () => {
      const { y, height } = (await link.boundingBox())!;
      return y >= list.y && y + height <= list.y + list.height;
    };
    await expect.poll(isInSight).toBe(true);
    await expect.poll(() => shownAt(page)).toBeCloseTo(Number(time));
  }
});

it('opens at the mark or the failure that the address names, also if a call began in the same millisecond', async () => {
  const timeline: readonly TimelineEntry[] = [
    { at: 1_000, kind: 'mark', text: 'cart' },
    { at: 1_000, kind: 'call', text: 'context.newPage()' },
    { at: 3_345, kind: 'failed', text: 'The total is wrong.' },
    { at: 3_345, kind: 'call', text: 'context.close()' },
  ];
  const url = await savePage(folder, facts(timeline, { result: 'failed' }), made.media);
  const page = await person.open(`${url}#t=3.345`);
  const current = page.locator('[aria-current="true"]');
  await expect.poll(() => current.textContent()).toContain('The total is wrong.');
  await page.getByRole('heading', { level: 3, name: 'cart' }).getByRole('link').click();
  await expect.poll(() => current.textContent()).toContain('cart');
});

it('opens a failed recording at its beginning, and shows the failure when asked', async () => {
  const page = await person.open(await savePage(folder, facts(TIMELINE, { result: 'failed' }), made.media));
  expect(await shownAt(page)).toBe(0);
  await page.getByRole('button', { name: 'Show the failure' }).click();
  await expect.poll(() => shownAt(page)).toBe(6.2);
  expect(new URL(page.url()).hash).toBe('#t=6.2');
  const failure = page.getByRole('link', { name: /Failed Error: the cart is empty/ });
  expect(await failure.getAttribute('aria-current')).toBe('true');
  await expectColour(page, COLOURS[3]);
  expect(faults(page)).toEqual([]);
});

it('goes from one failure to the next and back, with buttons and with a key', async () => {
  const failures = [1_000, 3_000, 7_000].map((at): TimelineEntry => ({
    at,
    kind: 'failed',
    text: `at ${at}`,
  }));
  const page = await person.open(await savePage(folder, facts(failures), made.media));
  const next = page.getByRole('button', { name: 'Next of 3 failures' });
  const back = page.getByRole('button', { name: 'Previous failure' });
  for (const [button, at] of [
    [next, 1],
    [next, 3],
    [back, 1],
    [back, 7],
    [next, 1],
  ] as const) {
    await button.click();
    await expect.poll(() => shownAt(page)).toBe(at);
  }
  await page.keyboard.press('e');
  await expect.poll(() => shownAt(page)).toBe(3);
});

it('shows tests and failures as labelled flags above the scrub bar, which go to their moment', async () => {
  const page = await person.open(await savePage(folder, facts(TIMELINE), made.media));
  const flags = page.locator('#flags a');
  expect(await flags.allTextContents()).toEqual([
    'shop.spec.ts › cart › pays',
    'Failed: Error: the cart is empty',
  ]);
  const boxes = await Promise.all([0, 1].map(async (index) => (await flags.nth(index).boundingBox())!));
  expect(boxes[0]!.x + boxes[0]!.width).toBeLessThanOrEqual(boxes[1]!.x + 1);
  await flags.nth(1).click();
  await expect.poll(() => shownAt(page)).toBe(6.2);
});

it('plays pictures where there is no video, with the same controls, keys and speeds', async () => {
  const page = await person.open(await savePage(folder, facts(TIMELINE, PICTURES), made.media));
  await expectColour(page, COLOURS[0]);
  expect(await page.locator('video').isVisible()).toBe(false);
  await page.getByLabel('Position in the video').fill('4500');
  await expectColour(page, COLOURS[2]);
  await page.keyboard.press('ArrowLeft');
  expect(await shownAt(page)).toBe(0);
  await page.keyboard.press('End');
  await expectColour(page, COLOURS[3]);
  await page.keyboard.press('Home');
  await expectColour(page, COLOURS[0]);
  await page.getByLabel('Speed').selectOption('8');
  await page.getByRole('button', { name: 'Play' }).click();
  // The pictures end by themselves.
  await expect.poll(() => shownAt(page)).toBe(8);
  await page.getByRole('button', { name: 'Play' }).waitFor();
  await expectColour(page, COLOURS[3]);
  await page.getByLabel('Speed').selectOption('0.25');
  await page.getByRole('button', { name: 'Play' }).click();
  await expect.poll(() => shownAt(page)).toBeGreaterThan(0);
  await page.keyboard.press(' ');
  const paused = await shownAt(page);
  expect(paused).toBeLessThan(8);
  await page.getByRole('button', { name: 'Play' }).waitFor();
  expect(await shownAt(page)).toBe(paused);
  await page.getByRole('button', { name: 'Show the failure' }).click();
  await expect.poll(() => shownAt(page)).toBe(6.2);
  expect(faults(page)).toEqual([]);
});

it('shows the events at the moment that the address names where nothing can be played', async () => {
  const more = { state: 'none', video: undefined, failure: 'The encoder failed.' } as const;
  const url = await savePage(folder, facts(TIMELINE, more), made.media);
  const page = await person.open(`${url}#t=6.2`);
  await page.getByText('The encoder failed.').waitFor();
  const failure = page.getByRole('link', { name: /Failed Error: the cart is empty/ });
  await expect.poll(() => failure.getAttribute('aria-current')).toBe('true');
});

it('goes to events and failures, with buttons and keys, also where nothing can be played', async () => {
  const url = await savePage(folder, facts(TIMELINE, { state: 'none', video: undefined }), made.media);
  const page = await person.open(url);
  const current = page.locator('#entries [aria-current="true"]');
  await page.getByRole('button', { name: 'Show the failure' }).click();
  await expect.poll(() => current.textContent()).toContain('Failed Error: the cart is empty');
  expect(new URL(page.url()).hash).toBe('#t=6.2');
  await page.getByRole('button', { name: 'Previous event' }).click();
  await expect.poll(() => current.textContent()).toContain('page.click("#pay")');
  await page.keyboard.press('p');
  await expect.poll(() => current.textContent()).toContain('Download');
  await page.keyboard.press('e');
  await expect.poll(() => current.textContent()).toContain('Failed');
  // There is nothing to play.
  await page.keyboard.press(' ');
  for (const name of ['Play', 'Pause', 'Full screen'])
    expect(await page.getByRole('button', { name, exact: true }).count()).toBe(0);
  expect(await page.getByRole('slider').count()).toBe(0);
  expect(faults(page)).toEqual([]);
});

it('says of a recording that still runs that its video follows', async () => {
  const url = await savePage(folder, facts(TIMELINE, { state: 'recording', video: undefined }), made.media);
  const page = await person.open(url);
  await page.getByText('Still recording').waitFor();
  await page.getByText('If the recording was killed, there is no video.').waitFor();
});

it('has no buttons where there is neither a video nor an event', async () => {
  const url = await savePage(folder, facts([], { state: 'none', video: undefined }), made.media);
  const page = await person.open(url);
  await page.getByText('No events yet.').waitFor();
  expect(await page.locator('#controls').isVisible()).toBe(false);
});

it('says what grey boxes in the picture are, only if there are any', async () => {
  const sentence = async (more: Partial<SavedFacts>) => {
    const page = await person.open(await savePage(folder, facts(TIMELINE, more), made.media));
    await page.locator('#facts dt').first().waitFor();
    return page.getByText('recording.hide').allTextContents();
  };
  const covered = 'Grey boxes cover password fields and elements that recording.hide names.';
  expect(await sentence({ masked: 'covered' })).toEqual([covered]);
  expect(await sentence({ masked: 'left-out' })).toEqual([expect.stringMatching(/^Pictures .* left out\.$/)]);
  expect(await sentence({})).toEqual([]);
});

it('shows text from outside as text, whatever it contains', async () => {
  const hostile = '</script><img src=x onerror="document.title=1"><!-- \u202Egpj.exe \u0000\u0007';
  const long = 'x'.repeat(100_000);
  const timeline: TimelineEntry[] = [
    { at: 1, kind: 'mark', text: hostile },
    { at: 2, kind: 'call', text: hostile, status: `${hostile} \uD800` },
    { at: 3, kind: 'failed', text: long },
  ];
  const more = { tags: { [hostile]: hostile }, pool: long, failure: hostile, leaseName: hostile };
  const page = await person.open('about:blank');
  const requested = await watchRequests(page);
  await page.goto(await savePage(folder, facts(timeline, more), made.media));
  const heading = page.getByRole('heading', { level: 1 });
  await expect.poll(() => heading.textContent()).toContain('</script><img src=x');
  expect(await heading.textContent()).toContain('\\u202egpj.exe');
  expect(await page.title()).toContain('</script><img');
  expect(await page.locator('img[src=x]').count()).toBe(0);
  expect(/[\u202E\uD800]/u.test(await page.locator('main').innerText())).toBe(false);
  const overflow = () => document.documentElement.scrollWidth - document.documentElement.clientWidth;
  for (const width of [360, 1280]) {
    await page.setViewportSize({ width, height: 800 });
    expect(await page.evaluate(overflow)).toBe(0);
  }
  await page.keyboard.press('End');
  expect(requested.filter((url) => !/^(file|data):/.test(url))).toEqual([]);
  expect(requested.some((url) => url.endsWith('/video.webm'))).toBe(true);
  expect(faults(page)).toEqual([]);
});
