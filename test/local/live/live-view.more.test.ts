import { chromium, type Browser, type Page } from 'playwright-core';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import type { BrowserSession } from '../../../src/index.js';
import { changed, faults, tokenIn, usePerson } from '../pages/support.js';
import { Replays } from '../replays/support.js';
import { closed, leaseConnected, startApi, tryWebSocket } from '../support.js';

const api = await startApi({
  pools: [{ viewport: { width: 800, height: 600 } }, { name: 'brief', timeoutSeconds: 2 }],
  quirks: { liveViewsHeadless: true },
});
const person = usePerson();
let session: BrowserSession;
let client: Browser;
/** The page of the leased browser, as its client sees it. */
let leased: Page;

beforeEach(async () => {
  session = await api.lease();
  client = await chromium.connectOverCDP(session.cdp_ws_url);
  leased = client.contexts()[0]!.pages()[0]!;
  await leased.goto(`data:text/html,<title>Form</title><input autofocus><button onclick="this.textContent+='!'">Go</button>
    <p style="height:5000px">`);
});
afterEach(async () => {
  await client.close().catch(() => {});
  await api.release(session, false);
});

it('lets a person click, type, paste and scroll beside the client, and shows the changes of both', async () => {
  const permissions = ['clipboard-read', 'clipboard-write'];
  const view = await person.open(session.browser_live_view_url!, { permissions });
  await pictures(view);
  await clickIn(view, 'button');
  await expect.poll(() => leased.getByRole('button').textContent()).toBe('Go!');
  await clickIn(view, 'input');
  await view.keyboard.type('Größe 7');
  await view.keyboard.press('Home');
  await view.keyboard.type('a');
  await expect.poll(() => leased.getByRole('textbox').inputValue()).toBe('aGröße 7');
  await view.evaluate(() => navigator.clipboard.writeText(' pasted'));
  await view.keyboard.press('Control+v');
  await expect.poll(() => leased.getByRole('textbox').inputValue()).toContain('pasted');
  await view.mouse.wheel(0, 400);
  await expect.poll(() => leased.evaluate(() => scrollY)).toBeGreaterThan(0);
  await leased.getByRole('textbox').fill('by the client');
  expect(await leased.getByRole('textbox').inputValue()).toBe('by the client');
  await leased.evaluate(() => (document.body.style.background = 'rgb(200, 0, 0)'));
  const red = [200, 0, 0].map((part): unknown => expect.closeTo(part, -1));
  await expect.poll(() => colour(view)).toEqual(red);
  expect(faults(view)).toEqual([]);
});

it.each([
  [1800, 700],
  [390, 700],
])(
  'fills a window of %i x %i pixels with the picture, and a click hits the same element',
  async (width, height) => {
    const view = await person.open(session.browser_live_view_url!, { viewport: { width, height } });
    await pictures(view);
    const picture = (await view.locator('canvas').boundingBox())!;
    const ratio = await leased.evaluate(() => innerWidth / innerHeight);
    expect(picture.width / picture.height).toBeCloseTo(ratio, 1);
    const [mainWidth, mainHeight] = await view.locator('main').evaluate((main): [number, number] => {
      const { paddingTop, paddingLeft } = getComputedStyle(main);
      const { clientWidth, clientHeight } = main;
      return [clientWidth - 2 * parseFloat(paddingLeft), clientHeight - 2 * parseFloat(paddingTop)];
    });
    expect(picture.width).toBeCloseTo(Math.min(mainWidth, mainHeight * ratio), 0);
    await clickIn(view, 'button');
    await expect.poll(() => leased.getByRole('button').textContent()).toBe('Go!');
  },
);

it('lists the tabs, shows the newest one, and navigates with the address bar', async () => {
  const view = await person.open(session.browser_live_view_url!);
  await view.getByRole('tab', { name: 'Form', selected: true }).waitFor();
  const second = await client.contexts()[0]!.newPage();
  await second.goto('data:text/html,<title>Second</title>');
  await view.getByRole('tab', { name: 'Second', selected: true }).waitFor();
  await view.getByLabel('Address').fill('data:text/html,<title>Third</title>');
  await view.keyboard.press('Enter');
  await expect.poll(() => second.title()).toBe('Third');
  await view.getByRole('button', { name: 'Back' }).click();
  await expect.poll(() => second.title()).toBe('Second');
  await view.getByRole('tab', { name: 'Form' }).click();
  await view.getByRole('tab', { name: 'Form', selected: true }).waitFor();
  await clickIn(view, 'button');
  await expect.poll(() => leased.getByRole('button').textContent()).toBe('Go!');
});

it('refuses all input on a read-only WebSocket, and with the link to only watch, however it is changed', async () => {
  const link = await linkToWatch();
  expect(tokenIn(link)).not.toBe(tokenIn(session.browser_live_view_url!));
  const variants = ['true', 'false', '0', ''].map((readOnly) => changed(link, { readOnly }));
  for (const url of [socketUrl({ readOnly: 'true' }), link, ...variants]) {
    const { socket, mode } = await openLive(url);
    expect(mode.readOnly).toBe(true);
    if (url.includes(tokenIn(link))) expect(mode).toEqual({ type: 'mode', readOnly: true });
    for (const command of await attacks()) socket.send(JSON.stringify(command));
    await expectUntouched();
    socket.terminate();
  }
  // Proves that the same commands work on a WebSocket with control.
  const { socket: driving } = await openLive(socketUrl());
  for (const command of await attacks()) driving.send(JSON.stringify(command));
  await expect.poll(() => leased.url()).toBe('about:blank');
  driving.terminate();
});

it('opens nothing else with the token of the link to only watch, and nothing after the lease ended', async () => {
  const link = await linkToWatch();
  const token = tokenIn(link);
  const dashboard = api.pool.dashboardUrl.replace(/^http/, 'ws');
  for (const url of [session.cdp_ws_url, session.webdriver_ws_url, dashboard])
    expect([url, (await tryWebSocket(changed(url, { jwt: token, token }))).outcome]).toEqual([url, 401]);
  await api.release(session);
  await api.lease();
  expect((await tryWebSocket(link.replace(/^http/, 'ws'))).outcome).toBe(401);
});

it('links from control to watching, and back only for viewers who may control', async () => {
  const view = await person.open(session.browser_live_view_url!);
  await view.getByText('In control').waitFor();
  await view.getByRole('link', { name: 'Only watch' }).click();
  await view.getByText('Watching').waitFor();
  await pictures(view);
  expect(await view.getByRole('link', { name: 'Take control' }).count()).toBe(0);
  await clickIn(view, 'button');
  await view.goto(changed(session.browser_live_view_url!, { readOnly: 'true' }));
  await pictures(view);
  await view.getByText('Read-only').waitFor();
  await clickIn(view, 'button');
  expect(await view.getByLabel('Address').isEditable()).toBe(false);
  await expectUntouched();
  await view.getByRole('link', { name: 'Take control' }).click();
  await view.getByText('In control').waitFor();
  await pictures(view);
  await clickIn(view, 'button');
  await expect.poll(() => leased.getByRole('button').textContent()).toBe('Go!');
  expect(faults(view)).toEqual([]);
});

it('ignores invalid commands, and still performs valid ones', async () => {
  const { socket } = await openLive(socketUrl());
  const [click] = await attacks();
  for (const message of [
    '{',
    '[]',
    '{"type":"__proto__"}',
    '{"type":"mouse"}',
    '{"type":"navigate","url":"no url"}',
    '{"type":"navigate","url":"file:///etc/passwd"}',
    '{"type":"navigate","url":"chrome://version"}',
    '{"type":"navigate","url":"javascript:document.title=1"}',
  ]) {
    socket.send(message);
  }
  socket.send(Buffer.from([1, 2, 3]));
  for (const action of ['mousePressed', 'mouseReleased']) socket.send(JSON.stringify({ ...click, action }));
  await expect.poll(() => leased.getByRole('button').textContent()).toBe('Go!');
  socket.terminate();
});

it('counts as activity: a lease with a viewer does not expire', async () => {
  const { session, socket } = await leaseConnected(api, 'brief');
  const { expired } = api.pool.stats('brief');
  const view = await person.open(changed(session.browser_live_view_url!, { readOnly: 'true' }));
  await pictures(view);
  socket.close();
  // Longer than the timeout of the pool, measured by the viewer's browser.
  await view.evaluate(() => new Promise((resolve) => setTimeout(resolve, 3_500)));
  expect(await view.getByRole('status').textContent()).toBe('Watching');
  expect(api.pool.stats('brief').expired).toBe(expired);
  await view.close();
  await expect.poll(() => api.pool.stats('brief').expired).toBe(expired + 1);
});

it('ends with the lease, and says so, also when it is opened afterwards', async () => {
  const url = session.browser_live_view_url!;
  const view = await person.open(url);
  await pictures(view);
  const { socket } = await tryWebSocket(socketUrl());
  await api.release(session);
  await view.getByRole('heading', { name: 'The session has ended' }).waitFor();
  await closed(socket);
  const next = await api.lease();
  expect(next.session_id).toBe(session.session_id);
  expect((await tryWebSocket(socketUrl())).outcome).toBe(401);
  const late = await person.open(url);
  await late.getByRole('heading', { name: 'The session has ended' }).waitFor();
  await late.getByText(/ended after (\d+\.\d s|\d+ min \d+ s): released\. It was not recorded/).waitFor();
});

it('links the recordings of its own lease after the session has ended', async () => {
  const replay = await new Replays(api).record(session);
  const view = await person.open(session.browser_live_view_url!);
  await pictures(view);
  await api.release(session);
  await new Replays(api).record(await api.lease());
  const link = view.getByRole('link', { name: 'Open the recording' });
  await link.waitFor();
  expect(await link.getAttribute('href')).toBe(replay.replay_view_url);
  await link.click();
  await view.getByRole('heading', { level: 1, name: /^Lease of / }).waitFor();
});

function socketUrl(query: Readonly<Record<string, string>> = {}): string {
  return changed(session.browser_live_view_url!, query).replace(/^http/, 'ws');
}

/** The first message to a viewer. */
interface LiveMode {
  readonly type: string;
  readonly readOnly: boolean;
  readonly otherUrl?: string;
}

/**
 * Opens the WebSocket of a viewer, and waits for the first picture: until then, no command reaches a page. Listens from
 * the start: the first message may come with the response.
 */
async function openLive(url: string): Promise<{ socket: WebSocket; mode: LiveMode }> {
  const socket = new WebSocket(url.replace(/^http/, 'ws'));
  const mode = new Promise<LiveMode>((resolve, reject) => {
    socket.once('message', (data: Buffer) => resolve(JSON.parse(data.toString()) as LiveMode));
    socket.once('error', reject);
  });
  const picture = new Promise<void>((resolve) => {
    socket.on('message', (_data: Buffer, isBinary) => isBinary && resolve());
  });
  const opened = { socket, mode: await mode };
  await picture;
  return opened;
}

/** The link to only watch, which the live view shows to viewers with control. */
async function linkToWatch(): Promise<string> {
  const { socket, mode } = await openLive(socketUrl());
  socket.terminate();
  expect(mode).toEqual({ type: 'mode', readOnly: false, otherUrl: expect.any(String) });
  return mode.otherUrl!;
}

async function pictures(view: Page): Promise<void> {
  await expect
    .poll(async () => Number(await view.locator('canvas').getAttribute('data-pictures')))
    .toBeGreaterThan(0);
}

/** Clicks in the live view at the position of an element in the leased page. */
async function clickIn(view: Page, selector: string): Promise<void> {
  const target = (await leased.locator(selector).boundingBox())!;
  const picture = (await view.locator('canvas').boundingBox())!;
  const width = await leased.evaluate(() => innerWidth);
  const scale = picture.width / width;
  const x = picture.x + (target.x + target.width / 2) * scale;
  await view.mouse.click(x, picture.y + (target.y + target.height / 2) * scale);
}

/** The colour in the middle of the picture. */
function colour(view: Page): Promise<number[]> {
  return view.locator('canvas').evaluate((element) => {
    const canvas = element as HTMLCanvasElement;
    // On a copy: Chromium warns about a canvas that is read several times.
    const copy = new OffscreenCanvas(1, 1).getContext('2d')!;
    copy.drawImage(canvas, -canvas.width / 2, -canvas.height / 2);
    const { data } = copy.getImageData(0, 0, 1, 1);
    return [...data].slice(0, 3);
  });
}

/** Commands of all kinds that change something: first a click on the button. */
async function attacks(): Promise<object[]> {
  const { x, y, width, height } = (await leased.getByRole('button').boundingBox())!;
  const at = { x: x + width / 2, y: y + height / 2, modifiers: 0 };
  const mouse = { type: 'mouse', ...at, button: 'left', buttons: 1, clickCount: 1 };
  return [
    { ...mouse, action: 'mousePressed' },
    { ...mouse, action: 'mouseReleased' },
    { type: 'text', text: 'typed' },
    { type: 'wheel', ...at, deltaX: 0, deltaY: 300 },
    { type: 'navigate', url: 'about:blank' },
  ];
}

async function expectUntouched(): Promise<void> {
  // Earlier commands would take effect within this time.
  await leased.evaluate(() => new Promise((resolve) => setTimeout(resolve, 500)));
  expect(await leased.title()).toBe('Form');
  expect(await leased.getByRole('button').textContent()).toBe('Go');
  expect(await leased.getByRole('textbox').inputValue()).toBe('');
  expect(await leased.evaluate(() => scrollY)).toBe(0);
}
