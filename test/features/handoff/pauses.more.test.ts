import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inflateRawSync } from 'node:zlib';
import { chromium } from 'playwright-core';
import { afterAll, expect, it } from 'vitest';
import * as playwright from '../../../src/playwright.js';
import * as puppeteer from '../../../src/puppeteer.js';
import { titleOf } from '../../../src/recorder/page/title.js';
import { hue, VideoPlayer } from '../../local/replays/support.js';
import { useLocalPool } from '../../support/local.js';
import { useSite } from '../../support/site.js';
import { COMPLETE, readReplay, RECORD, told } from '../replays/support.js';
import { answer, control, reply, useHandoffs } from './support.js';

const used = useLocalPool();
const { open, nextUrl, onEvent } = useHandoffs();
const folder = mkdtempSync(join(tmpdir(), 'pauses-'));
const player = new VideoPlayer();
afterAll(async () => {
  await player.close();
  rmSync(folder, { recursive: true });
});

const TYPED = 'typed-canary-1234';
const SHOWN = 'shown-canary-5678';

/** A log-in that reports what is typed in each way that a page has, and is red while the person uses it. */
const PAGE = `<!doctype html><title>Log in</title><link rel="icon" href="data:,">
<body style="margin:0;background:blue"><form><input id="name" autofocus></form><p></p><script>
const name = document.querySelector('#name');
name.addEventListener('input', () => (document.body.style.background = 'red'));
document.forms[0].addEventListener('submit', async (event) => {
  event.preventDefault();
  console.log('submitted ' + name.value);
  setTimeout(() => { throw new Error('thrown ' + name.value); });
  const response = await fetch('/account?of=' + name.value, { method: 'POST', body: name.value });
  document.querySelector('p').textContent = document.title = await response.text();
  await fetch('/over');
  location = '/welcome';
});
</script>`;

const WELCOME = '<title>Welcome</title><body style="background:blue">';

/** The response for which the page waits, while it shows what the person may see. */
let seen: ServerResponse | undefined;
const site = useSite(({ url }, response) => {
  if (url === '/over') seen = response;
  else if (url!.startsWith('/account')) response.writeHead(403).end(SHOWN);
  else response.writeHead(200, { 'content-type': 'text/html' }).end(url === '/welcome' ? WELCOME : PAGE);
});

const LIBRARIES = [
  ['Playwright', playwright],
  ['Puppeteer', puppeteer as unknown as typeof playwright],
] as const;

it.each(LIBRARIES)(
  '%s: nothing that is typed or shown during a hand-off is in the recording, the log or the trace, which go on afterwards',
  async (name, library) => {
    const own = join(folder, name);
    seen = undefined;
    const run = await library.withPooledBrowser(
      used.pool,
      async ({ page, handoff }) => {
        await page.goto(`${site.url}/before`);
        await page.evaluate(`console.log('said before')`);
        // Pictures are taken at a part of the time.
        await sleep(1000);
        const asked = handoff({ message: 'Log in.' });
        const view = await open();
        await control(view);
        await view.keyboard.type(TYPED);
        await view.keyboard.press('Enter');
        await expect.poll(() => seen).toBeDefined();
        await sleep(1000);
        seen!.end();
        await view.getByRole('tab', { name: 'Welcome' }).waitFor();
        await answer(view, 'Done');
        await asked;
        await page.goto(`${site.url}/after`);
        await page.evaluate(`console.log('said after')`);
        await sleep(1000);
      },
      {
        ...RECORD,
        onEvent,
        recording: { by: 'client', folder: own },
        artifacts: { folder: own, on: 'always', trace: name === 'Playwright' },
      },
    );
    expect(run.cleanupErrors).toEqual([]);
    const { own: recorded, files, facts } = readReplay(run.replays[0]!);
    expect(files).toEqual(COMPLETE);
    for (const file of files) expectNothing(file, readFileSync(join(recorded, file)));
    expect(told(facts, 'mark', 'console')).toEqual([
      expect.stringContaining('said before'),
      'mark A person took over. Meanwhile, nothing is recorded.',
      'mark The person answered: "Done".',
      expect.stringContaining('said after'),
    ]);
    expect(titleOf(facts)).toBe('Lease of test');
    expect(told(facts, 'navigation').join()).toMatch(/\/before.*\/after/);
    const { colours } = await player.play(
      readFileSync(join(recorded, 'video.webm')),
      Array.from({ length: 20 }, (_, at) => at / 20),
    );
    const hues = new Set(colours.map(hue));
    expect([hues.has('blue'), hues.has('red')]).toEqual([true, false]);
    const [log, ...others] = run.artifacts;
    const text = readFileSync(log!, 'utf8');
    expectNothing('console.jsonl', Buffer.from(text));
    expect(text).toMatch(/said before[^]*said after/);
    const traces = others.filter((path) => path.endsWith('.zip'));
    const entries = traces.flatMap((path) => [...entriesOf(path)]);
    for (const [entry, content] of entries) expectNothing(entry, content);
    const actions = entries.map(([, content]) => content.toString()).join('\n');
    if (name === 'Playwright') expect(actions).toMatch(/said before[^]*said after/);
  },
);

it('pauses also for a hand-off that waits for another one', async () => {
  const own = join(folder, 'two');
  const { artifacts } = await playwright.withPooledBrowser(
    used.pool,
    async ({ page, session, handoff }) => {
      await page.evaluate(`console.log('said before')`);
      const both = [handoff({ message: 'First' }), handoff({ message: 'Second' })];
      await reply(await nextUrl());
      const url = await nextUrl();
      const theirs = await chromium.connectOverCDP(session.cdp_ws_url);
      await theirs.contexts()[0]!.pages()[0]!.evaluate(`console.log('${TYPED}')`);
      await theirs.close();
      await reply(url);
      await Promise.all(both);
    },
    { onEvent, artifacts: { folder: own, on: 'always', screenshot: false } },
  );
  const log = readFileSync(artifacts[0]!);
  expect(log.toString()).toContain('said before');
  expectNothing('console.jsonl', log);
});

it('a screencast of the program has frames without pictures until the answer, and then with pictures again', async () => {
  const { value } = await playwright.withPooledBrowser(
    used.pool,
    async ({ page, handoff }) => {
      await page.goto(site.url);
      const client = await page.context().newCDPSession(page);
      let pictures: string[] = [];
      client.on('Page.screencastFrame', ({ data, sessionId }) => {
        pictures.push(data);
        client.send('Page.screencastFrameAck', { sessionId }).catch(() => {});
      });
      await client.send('Page.startScreencast');
      await expect.poll(() => pictures.join('')).not.toBe('');
      const asked = handoff({ message: 'Type.' });
      const view = await open();
      pictures = [];
      await control(view);
      await view.keyboard.type(TYPED);
      await expect.poll(() => pictures.length).toBeGreaterThan(0);
      const withPicture = pictures.filter((picture) => picture !== '').length;
      await answer(view, 'Done');
      await asked;
      await page.evaluate(`document.body.style.background = 'green'`);
      await expect.poll(() => pictures.at(-1)).not.toBe('');
      return withPicture;
    },
    { onEvent },
  );
  expect(value).toBe(0);
});

function expectNothing(name: string, content: Buffer): void {
  const found = [TYPED, SHOWN].filter((text) => content.includes(text));
  expect(found, `${name} contains what the person has typed or seen`).toEqual([]);
}

/** The files of a zip archive. */
function* entriesOf(path: string): Iterable<[name: string, content: Buffer]> {
  const zip = readFileSync(path);
  const end = zip.lastIndexOf('PK\u0005\u0006');
  let at = zip.readUInt32LE(end + 16);
  for (let left = zip.readUInt16LE(end + 10); left > 0; left--) {
    const [method, size, name] = [
      zip.readUInt16LE(at + 10),
      zip.readUInt32LE(at + 20),
      zip.readUInt16LE(at + 28),
    ];
    const header = zip.readUInt32LE(at + 42);
    const begin = header + 30 + zip.readUInt16LE(header + 26) + zip.readUInt16LE(header + 28);
    const content = zip.subarray(begin, begin + size);
    yield [zip.toString('utf8', at + 46, at + 46 + name), method === 0 ? content : inflateRawSync(content)];
    at += 46 + name + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32);
  }
}
