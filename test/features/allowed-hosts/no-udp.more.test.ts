import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it, vi } from 'vitest';
import { BrowserPool, type BrowserSession } from '../../../src/index.js';
import { findBrowser, startLocalPool } from '../../../src/local.js';
import { NO_UDP } from '../../../src/local/browser/chromium-flags.js';
import { withPooledBrowser, type PlaywrightHandles } from '../../../src/playwright.js';
import { Site } from '../../support/site.js';

/** The one that the tests use, and both kinds where Debian's packages are installed. */
const PLACES = [await findBrowser(), '/usr/bin/chromium', '/usr/lib/chromium/chromium-headless-shell'];
const BROWSERS = [...new Set(PLACES)].filter((path) => existsSync(path));

/** The packets that WebRTC of a page sends to a server that it names. */
async function packetsOf(executablePath: string, args: readonly string[]): Promise<number> {
  const server = createSocket('udp4');
  let packets = 0;
  server.on('message', () => packets++);
  server.bind(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    await using site = await Site.open((_request, response) => response.end('<h1>Call</h1>'));
    await using local = await startLocalPool({ pools: [{ name: 'x', size: 1 }], executablePath, args });
    await using pool = new BrowserPool('x', { baseUrl: local.baseUrl, token: local.token });
    await withPooledBrowser(pool, async ({ page }) => {
      await page.goto(site.url);
      await page.evaluate(async (port) => {
        const connection = new RTCPeerConnection({ iceServers: [{ urls: `stun:127.0.0.1:${port}` }] });
        connection.createDataChannel('any');
        await connection.setLocalDescription();
        await new Promise((resolve) => setTimeout(resolve, 1500));
      }, server.address().port);
    });
    return packets;
  } finally {
    server.close();
  }
}

it.each(BROWSERS)(
  'WebRTC of %s sends no UDP packet with the flags of limited browsers, and sends some without them',
  async (path) => {
    expect(await packetsOf(path, NO_UDP)).toBe(0);
    expect(await packetsOf(path, [])).toBeGreaterThan(0);
  },
);

afterEach(() => void vi.unstubAllEnvs());

/** Leaves for a host that is not allowed, and uses the WebRTC that new frames of the old document have meanwhile. Runs in pages. */
function leave(udp: number): void {
  // A busy machine keeps the old document for longer.
  const busy = URL.createObjectURL(new Blob(['for (const end = Date.now() + 1000; Date.now() < end; );']));
  Object.assign(globalThis, { workers: Array.from({ length: 4 }, () => new Worker(busy)) });
  setInterval(() => {
    const frame = document.createElement('iframe');
    document.body.append(frame);
    const { RTCPeerConnection: Connection } = frame.contentWindow as unknown as typeof globalThis;
    if (!('createOffer' in (Connection?.prototype ?? {}))) return frame.remove();
    const connection = new Connection({ iceServers: [{ urls: `stun:127.0.0.1:${udp}` }] });
    connection.createDataChannel('any');
    void connection.setLocalDescription();
    void fetch('/connected', { keepalive: true });
  }, 5);
  setTimeout(() => location.assign('http://other.test/'), 200);
}

/** A page is free of its guard only in some of its navigations. */
const CONNECTIONS = 20;

it.each(BROWSERS)(
  "a page that leaves for another host sends no UDP packet in %s of baseUrl 'local', though it gets connections of WebRTC",
  async (path) => {
    vi.stubEnv('CHROME_PATH', path);
    const server = createSocket('udp4');
    let [packets, connections] = [0, 0];
    server.on('message', () => packets++);
    await once(server.bind(0, '127.0.0.1'), 'listening');
    const script = `<body><script>(${leave.toString()})(${server.address().port})</script>`;
    await using site = await Site.open(({ url }, response) => {
      if (url === '/connected') connections++;
      response.writeHead(200, { 'content-type': 'text/html' }).end(script);
    });
    await using pool = new BrowserPool('leaving', { baseUrl: 'local', local: { size: 1 } });
    const limited = new Set<string>();
    const visit = async ({ page, session }: PlaywrightHandles & { session: BrowserSession }) => {
      limited.add(session.session_id);
      await page.goto(site.url);
      await sleep(1500);
    };
    const allowedHosts = new URL(site.url).host;
    while (connections < CONNECTIONS) await withPooledBrowser(pool, visit, { allowedHosts });
    expect(packets).toBe(0);
    server.close();
    // A lease without the option has another browser, whose WebRTC works.
    const { value } = await withPooledBrowser(pool, ({ session }) => session.session_id);
    expect(limited).not.toContain(value);
  },
);
