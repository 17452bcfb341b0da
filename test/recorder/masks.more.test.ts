import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { decode } from 'jpeg-js';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { findBrowser } from '../../src/local.js';
import { type Chromium, launchChromium } from '../../src/local/browser/chromium.js';
import { readFrames } from '../../src/recorder/frames.js';
import { encodeHere, Recorder } from '../../src/recorder/recorder.js';
import type { Recording } from '../../src/recorder/recording.js';
import { CdpSession, type CdpClient } from '../../src/wire/cdp-client.js';
import { sourceOver } from '../../src/wire/cdp-source.js';

let chromium: Chromium;
let user: CdpClient;
/** The same pages under two sites: each host is a site. */
const pages = new Map<string, string>();
const server = createServer(({ url = '' }, response) => {
  if (url === '/slow.css') return void setTimeout(() => response.end(), 1_000);
  response.setHeader('content-type', 'text/html');
  response.end(`<!doctype html><meta charset="utf-8">${pages.get(url) ?? ''}`);
});

beforeAll(async () => {
  const executablePath = await findBrowser();
  const args = ['--site-per-process', '--window-size=600,500', '--host-resolver-rules=MAP *.test 127.0.0.1'];
  chromium = await launchChromium({ executablePath, headless: true, args }, new AbortController().signal);
  user = await sourceOver(chromium.pipe)();
  await once(server.listen(0, '127.0.0.1'), 'listening');
});
afterAll(async () => {
  await chromium.kill();
  server.close();
});

function urlOf(host: string, path: string): string {
  return `http://${host}.test:${(server.address() as AddressInfo).port}${path}`;
}

/** The colour of what is secret, which nothing else has. */
const SECRET = 'background: #f0f; color: #f0f; border: 0; width: 200px; height: 40px;';
/** Adds something of another colour a while after the load: pictures show it once the secret was visible for some time. */
const LATER = `<script>setTimeout(() => {
  const later = document.createElement('p');
  later.style = 'background: #0f0; width: 60px; height: 60px; position: fixed; right: 0; bottom: 0; margin: 0';
  document.body.append(later);
}, 700)</script>`;

interface Seen {
  pictures: number;
  /** Pictures that show the secret. */
  secret: number;
  /** Pictures that show what was added later. */
  later: number;
  /** The largest part of a picture that is covered. */
  covered: number;
  /** The part of the last picture that is covered. */
  last: number;
}

interface Site {
  /** What is hidden. */
  readonly hide?: readonly string[];
  /** A page that contains `<i class="secret">`, or something else with the colour. */
  readonly page: string;
  /** The page `/frame`. */
  readonly frame?: string;
  /** Whether the page is never seen. */
  readonly hidesAll?: boolean;
  /** The number of pictures, if it changes all the time. */
  readonly pictures?: number;
  /** What a client does before it opens the page. */
  readonly prepare?: (page: CdpSession) => Promise<unknown>;
}

interface Recorded extends Seen {
  readonly masked: string | undefined;
  readonly timeline: string[];
}

/**
 * Records a page from its opening until a picture shows what was added later, and the secret if it is not hidden. Then calls
 * `act`.
 */
async function record(
  site: Site,
  act: (page: CdpSession) => Promise<unknown> = async () => {},
): Promise<Recorded> {
  pages.set('/page', `<body>${site.page}${LATER}`);
  pages.set('/frame', `<body style="margin: 0">${site.frame ?? ''}`);
  const recorder = new Recorder({
    limits: { folder: undefined, maxBytes: 1e9, maxTotalBytes: 1e9, keep: 10 },
    encoder: encodeHere(() => Promise.reject(new Error('no video'))),
  });
  const { targetId } = await user.send('Target.createTarget', { url: 'about:blank' });
  // Otherwise the recorder may begin with another page.
  for (const { targetId: other, type } of await user.targets())
    if (type === 'page' && other !== targetId) await user.send('Target.closeTarget', { targetId: other });
  const page = new CdpSession(user, await user.attach(targetId));
  try {
    await site.prepare?.(page);
    const session = { sessionId: 's', leaseId: 'l', pool: 'p' };
    const plan = { framerate: 25, hide: site.hide };
    const recording = await recorder.record(chromium, session, plan, {
      signal: new AbortController().signal,
    });
    await page.ask('Page.navigate', { url: urlOf('own', '/page') });
    if (site.hidesAll) {
      await sleep(2_000);
      return { ...(await look(recording)), masked: recording.facts.masked, timeline: [] };
    }
    const isSeen = ({ pictures, later, secret }: Seen) =>
      later > 0 && pictures >= (site.pictures ?? 1) && (site.hide !== undefined || secret > 0);
    await expect.poll(async () => isSeen(await look(recording)), { interval: 200 }).toBe(true);
    await act(page);
    await recording.stopWithPicture();
    const { timeline, masked } = recording.facts;
    return {
      ...(await look(recording)),
      masked,
      timeline: timeline.map(({ kind, text }) => `${kind}: ${text}`),
    };
  } finally {
    await recorder.close();
  }
}

/** What was seen in a picture, so that each is decoded once: the recorder has the same process. */
const looked = new Map<string, { secret: number; later: number; covered: number }>();

/** Reads the pictures that the recording has stored until now. */
async function look(recording: Recording): Promise<Seen> {
  const poster = await recording.readPoster();
  const jpegs = poster ? [poster] : [];
  for await (const { jpeg } of readFrames(recording.files.frames)) jpegs.push(jpeg);
  const seen = { pictures: jpegs.length, secret: 0, later: 0, covered: 0, last: 0 };
  for (const jpeg of jpegs) {
    const key = jpeg.toString('base64');
    const colours = looked.get(key) ?? coloursIn(jpeg);
    looked.set(key, colours);
    if (colours.secret > 0) seen.secret++;
    if (colours.later > 0) seen.later++;
    seen.covered = Math.max(seen.covered, colours.covered);
    seen.last = colours.covered;
  }
  return seen;
}

function coloursIn(jpeg: Buffer) {
  const { data } = decode(jpeg, { formatAsRGBA: false });
  const colours = { secret: 0, later: 0, covered: 0 };
  for (let at = 0; at < data.length; at += 3) {
    const [red, green, blue] = [data[at]!, data[at + 1]!, data[at + 2]!];
    if (red > 170 && green < 100 && blue > 170) colours.secret++;
    if (red < 100 && green > 180 && blue < 100) colours.later++;
    if (Math.max(red, green, blue) < 91 && Math.min(red, green, blue) > 81)
      colours.covered += 3 / data.length;
  }
  return colours;
}

const MOVING =
  '<style>@keyframes go { to { margin-left: 200px } } u { animation: go 1s infinite }</style><u>...</u>';
const SECRET_ELEMENT = `<div class="secret" style="${SECRET}">4929</div>`;
const frame = (host: string) =>
  `<p>Pay</p><iframe style="margin: 30px; padding: 7px; border: 3px solid" src="${urlOf(host, '/frame')}"></iframe>`;

it.each<[string, () => Omit<Site, 'hide'>]>([
  ['at its place', () => ({ page: SECRET_ELEMENT })],
  ['in a frame of the same site', () => ({ page: frame('own'), frame: SECRET_ELEMENT })],
  ['in a frame of another site', () => ({ page: frame('other'), frame: SECRET_ELEMENT })],
  [
    'in a frame that is scaled',
    () => ({
      page: `<div style="transform: scale(1.7); transform-origin: 0 0">${frame('other')}</div>`,
      frame: SECRET_ELEMENT,
    }),
  ],
  [
    'in a frame that is rotated',
    () => ({ page: `<div style="transform: rotate(180deg)">${frame('other')}</div>`, frame: SECRET_ELEMENT }),
  ],
  [
    'in a frame in a frame of another site',
    () => ({
      page: frame('other'),
      frame: `<iframe srcdoc='<body style="margin: 20px">${SECRET_ELEMENT}'></iframe>`,
    }),
  ],
  [
    'in a frame of another site in a shadow root',
    () => ({
      page: `<div><template shadowrootmode="open">${frame('other')}</template></div>`,
      frame: SECRET_ELEMENT,
    }),
  ],
  [
    'in a shadow root',
    () => ({ page: `<div><template shadowrootmode="open">${SECRET_ELEMENT}</template></div>` }),
  ],
  [
    'outside of its parent',
    () => ({
      page: `<div class="secret" style="width: 9px"><div style="${SECRET} position: absolute; top: 200px; left: 300px"></div></div>`,
    }),
  ],
  [
    'of a page with the names of functions',
    () => ({
      page: `<form name=querySelectorAll></form><img name=nodeType><img name=defaultView><a id=recorderMasks></a>
        <form class="secret" style="${SECRET}"><input name=getBoundingClientRect><input name=localName></form>`,
    }),
  ],
  [
    'that an animation moves',
    () => ({
      pictures: 12,
      page: `<style>@keyframes go { 50% { transform: translate(400px, 300px) } }
        .secret { animation: go 0.3s ease infinite }</style>${SECRET_ELEMENT}`,
    }),
  ],
  [
    'that a script moves in each frame',
    () => ({
      pictures: 12,
      page: `${SECRET_ELEMENT}<script>
        const one = document.querySelector('.secret');
        one.style.position = 'absolute';
        (function go(time) {
          one.style.left = 300 + 300 * Math.sin(time / 40) + 'px';
          requestAnimationFrame(go);
        })(0);
      </script>`,
    }),
  ],
  [
    'of a page that scrolls',
    () => ({
      pictures: 12,
      page: `<div style="height: 300px"></div>${SECRET_ELEMENT}<div style="height: 3000px"></div><script>
        let to = 0;
        setInterval(() => scrollTo({ top: (to = 400 - to), behavior: 'smooth' }), 300);
      </script>`,
    }),
  ],
  [
    'that appears again and again',
    () => ({
      pictures: 5,
      page: `<main></main><script>setInterval(() => {
          const main = document.querySelector('main');
          main.innerHTML = main.innerHTML === '' ? '${SECRET_ELEMENT}' : '';
        }, 50)</script>`,
    }),
  ],
  [
    'of a phone',
    () => ({
      page: `<meta name="viewport" content="width=device-width"><div style="height: 300px"></div>${SECRET_ELEMENT}`,
      prepare: (page) =>
        page.ask('Emulation.setDeviceMetricsOverride', {
          width: 390,
          height: 664,
          deviceScaleFactor: 3,
          mobile: true,
        }),
    }),
  ],
])('does not show a hidden element %s', async (_where, siteOf) => {
  const site = siteOf();
  const shown = await record(site);
  expect(shown.secret).toBeGreaterThan(0);
  const hidden = await record({ ...site, hide: ['#none', '.secret'] });
  expect(hidden.secret).toBe(0);
  expect(hidden.covered).toBeGreaterThan(0);
  // What moves far from one frame to the next can be anywhere.
  if (site.pictures === undefined) expect(hidden.covered).toBeLessThan(0.7);
});

const field = (type: string, more = '') => `<input ${type} ${more} value="4929" style="${SECRET}">`;

it.each<[string, string, string?]>([
  ['', field('type=password')],
  ['with a type in capitals', field('type=PassWord')],
  ['in a shadow root', `<div><template shadowrootmode="open">${field('type=password')}</template></div>`],
  ['in a frame of another site', 'frame', field('type=password')],
  ['whose type a button changes', field('type=password'), `one.type = 'text'`],
  ['whose type is removed', field('type=password'), `one.removeAttribute('type')`],
  [
    'whose type changes outside of the page',
    field('type=password'),
    `one.remove(); one.type = 'text'; document.body.prepend(one)`,
  ],
  [
    'that moves into a shadow root as text',
    field('type=password'),
    `
    const host = document.createElement('div');
    document.body.prepend(host);
    host.attachShadow({ mode: 'open' }).append(one);
    one.type = 'text'`,
  ],
  [
    'that a field of the same name replaces',
    field('type=password', 'name=pw'),
    `
    one.outerHTML = one.outerHTML.replace('password', 'text')`,
  ],
  ['that is shown from the beginning', field('type=text', 'autocomplete="section-a current-password"')],
])('does not show a password field %s', async (_which, page, more) => {
  const change =
    more && page !== 'frame'
      ? `<script>setTimeout(() => { const one = document.querySelector('input'); ${more} }, 300)</script>`
      : '';
  const site = (one: string): Site =>
    page === 'frame' ? { page: frame('other'), frame: one } : { page: `${one}${change}` };
  const own = page === 'frame' ? more! : page;
  const asText = own.replace(/type=password/i, 'type=text').replace('current-password', 'off');
  expect((await record(site(asText))).secret).toBeGreaterThan(0);
  const hidden = await record({ ...site(own), hide: [] });
  expect(hidden.secret).toBe(0);
  expect(hidden.covered).toBeGreaterThan(0);
  // A frame is covered as a whole until its document has reported itself.
  expect(hidden.covered).toBeLessThan(0.3);
});

it('does not show a password field that was used, and is text before the next picture, in a document that a script has written', async () => {
  const written = (type: string) => `<body><script>setTimeout(() => {
    const one = document.createElement('input');
    Object.assign(one, { type: '${type}', value: '4929' });
    one.style = '${SECRET}';
    document.body.prepend(one);
    one.focus();
    one.remove();
    setTimeout(() => {
      one.type = 'text';
      document.body.prepend(one);
    });
  }, 300)</script>${LATER}`;
  const site = (type: string): Site => ({
    page: `<script>setTimeout(() => {
      const text = decodeURIComponent('${encodeURIComponent(written(type)).replaceAll("'", '%27')}');
      document.open();
      document.write(text);
      document.close();
    }, 100)</script>`,
  });
  expect((await record(site('text'))).secret).toBeGreaterThan(0);
  const hidden = await record({ ...site('password'), hide: [] });
  expect(hidden.secret).toBe(0);
  expect(hidden.covered).toBeGreaterThan(0);
});

it.each(['own', 'other'])(
  'does not show a hidden element until the next page has its first frame: %s',
  async (next) => {
    pages.set('/next', `<link rel="stylesheet" href="/slow.css"><body>Paid${LATER}`);
    const page = `${SECRET_ELEMENT}<script>setTimeout(() => (location = '${urlOf(next, '/next')}'), 300)</script>`;
    expect((await record({ page })).secret).toBeGreaterThan(0);
    const hidden = await record({ page, hide: ['.secret'] });
    expect(hidden.secret).toBe(0);
  },
);

it.each(['other', 'third'])(
  'does not show a hidden element until the next page of its frame is shown: %s',
  async (next) => {
    pages.set('/next', '<link rel="stylesheet" href="/slow.css"><body>Paid');
    const go = `<script>setTimeout(() => (location = '${urlOf(next, '/next')}'), 2_000)</script>`;
    // Pictures are taken all the time.
    const site = { page: `${MOVING}${frame('other')}`, frame: SECRET_ELEMENT + go };
    const wait = () => sleep(4_000);
    expect((await record(site, wait)).secret).toBeGreaterThan(0);
    const hidden = await record({ ...site, hide: ['.secret'] }, wait);
    expect(hidden.secret).toBe(0);
    expect(hidden.pictures).toBeGreaterThan(10);
  },
);

it('covers a frame of another site only until it is known that nothing in it is hidden', async () => {
  const site = {
    page: frame('other'),
    frame: '<link rel="stylesheet" href="/slow.css">Pay',
    hide: ['.secret'],
  };
  const { covered, last } = await record(site, () => sleep(2_000));
  expect(covered).toBeGreaterThan(0.1);
  // The edges of letters have all colours.
  expect(last).toBeLessThan(0.01);
});

it('does not show a hidden element if JavaScript is disabled', async () => {
  const prepare = (page: CdpSession) => page.ask('Emulation.setScriptExecutionDisabled', { value: true });
  const page = `${SECRET_ELEMENT}<p style="background: #0f0; width: 60px; height: 60px; position: fixed; right: 0; bottom: 0"></p>`;
  expect((await record({ page, prepare })).secret).toBeGreaterThan(0);
  const hidden = await record({ page, prepare, hide: ['.secret'] });
  expect(hidden.secret).toBe(0);
});

it.each([
  [
    'has more hidden elements than are measured',
    '<i class="secret"></i>'.repeat(500) + SECRET_ELEMENT,
    '.secret',
  ],
  ['has a selector that fails', SECRET_ELEMENT, ':no-selector('],
])('shows nothing of a page that %s', async (_what, page, hidden) => {
  const recorded = await record({ page, hide: [hidden], hidesAll: true });
  expect(recorded.secret).toBe(0);
  expect(recorded.later).toBe(0);
});

it('has no text of hidden elements in the timeline', async () => {
  const page = `<button id="a">Pay <b class="secret">4929</b></button><button id="b">Open</button>
    <div class="secret"><button id="c" aria-label="Card 4929">4929</button></div>`;
  const click = async (client: CdpSession) => {
    for (const id of ['a', 'b', 'c']) {
      const expression = `{ const { x, y } = document.querySelector('#${id}').getBoundingClientRect(); [x + 3, y + 3].join() }`;
      const { result } = await client.ask('Runtime.evaluate', { expression });
      const [x, y] = String(result.value).split(',').map(Number);
      for (const type of ['mousePressed', 'mouseReleased'])
        await client.ask('Input.dispatchMouseEvent', { type, x, y, button: 'left', clickCount: 1 });
    }
  };
  const clicks = async (hide: string[]) => {
    const { timeline } = await record({ page, hide }, click);
    return timeline.filter((entry) => entry.startsWith('click: '));
  };
  expect(await clicks([])).toEqual([
    'click: button#a Pay 4929',
    'click: button#b Open',
    'click: button#c Card 4929',
  ]);
  expect(await clicks(['.secret'])).toEqual(['click: button#a', 'click: button#b Open', 'click: button']);
});

it('says that something is covered only if a picture shows it', async () => {
  const below = `<div style="height: 3000px">Pay</div>`;
  expect((await record({ page: SECRET_ELEMENT, hide: ['.secret'] })).masked).toBe('covered');
  expect((await record({ page: below + SECRET_ELEMENT, hide: ['.secret'] })).masked).toBeUndefined();
  expect((await record({ page: SECRET_ELEMENT })).masked).toBeUndefined();
});

it('reports clicks in a frame of another site', async () => {
  const site = { page: frame('other'), frame: '<button>Pay</button>', hide: [] };
  const { timeline } = await record(site, async (client) => {
    for (const type of ['mousePressed', 'mouseReleased'])
      await client.ask('Input.dispatchMouseEvent', { type, x: 60, y: 100, button: 'left', clickCount: 1 });
    await sleep(300);
  });
  expect(timeline).toContain('click: button Pay');
});
