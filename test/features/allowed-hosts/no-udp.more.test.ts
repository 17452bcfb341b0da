import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { expect, it } from 'vitest';
import { BrowserPool } from '../../../src/index.js';
import { findBrowser, startLocalPool } from '../../../src/local.js';
import { NO_UDP } from '../../../src/local/browser/chromium-flags.js';
import { withPooledBrowser } from '../../../src/playwright.js';
import { Site } from '../../support/site.js';

/** The one that the tests use, and both kinds where Debian's packages are installed. */
const BROWSERS = [await findBrowser(), '/usr/bin/chromium', '/usr/lib/chromium/chromium-headless-shell'];

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

it.each([...new Set(BROWSERS)].filter((path) => existsSync(path)))(
  'WebRTC of %s sends no UDP packet with the flags of limited browsers, and sends some without them',
  async (path) => {
    expect(await packetsOf(path, NO_UDP)).toBe(0);
    expect(await packetsOf(path, [])).toBeGreaterThan(0);
  },
);
