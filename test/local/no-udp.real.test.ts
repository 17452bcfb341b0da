import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import type { AcquireRequest, BrowserSession } from '../../src/index.js';
import { drive, startApi, titled, until } from './support.js';

const api = await startApi({ pools: [{ size: 1, onDemand: true }] });
/** The extension of the API. */
const withoutUdp: AcquireRequest & { no_udp: boolean } = { no_udp: true };

/** The packets that WebRTC of a page sends to a server that it names. */
async function packetsOf(session: BrowserSession): Promise<number> {
  const server = createSocket('udp4');
  let packets = 0;
  server.on('message', () => packets++);
  await once(server.bind(0, '127.0.0.1'), 'listening');
  try {
    await drive(session, async (page) => {
      await page.goto(titled('Call'));
      await page.evaluate(async (port) => {
        const connection = new RTCPeerConnection({ iceServers: [{ urls: `stun:127.0.0.1:${port}` }] });
        connection.createDataChannel('any');
        const ended = new Promise((resolve) => (connection.onicegatheringstatechange = resolve));
        await connection.setLocalDescription();
        await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 1500))]);
        await new Promise((resolve) => setTimeout(resolve, 1000));
      }, server.address().port);
    });
    return packets;
  } finally {
    server.close();
  }
}

it('a lease whose WebRTC must send no UDP has a browser of its own, and other leases have another one', async () => {
  const leases: { id: string; sends: boolean }[] = [];
  for (const body of [{}, withoutUdp, withoutUdp, {}]) {
    const session = await api.lease(body);
    leases.push({ id: session.session_id, sends: (await packetsOf(session)) > 0 });
    await api.release(session, true);
  }
  const [usual, limited, again, last] = leases;
  expect(leases.map(({ sends }) => sends)).toEqual([true, false, false, true]);
  expect(again!.id).toBe(limited!.id);
  expect(new Set([usual!.id, limited!.id, last!.id]).size).toBe(3);
  expect(api.eventsOf('browser-destroyed').map(({ reason }) => reason)).toEqual(['replaced', 'replaced']);
});

it('waiting requests that need different browsers are served in the order of their arrival', async () => {
  const holder = await api.lease();
  const served: number[] = [];
  const waiters: Promise<void>[] = [];
  for (const [number, body] of [withoutUdp, {}, withoutUdp].entries()) {
    const waiter = api.lease(body).then(async (session) => {
      served.push(number);
      await api.release(session, true);
    });
    waiters.push(waiter);
    await until('the request waits', () => api.pool.stats('default').waiting === number + 1);
  }
  await api.release(holder, true);
  await Promise.all(waiters);
  expect(served).toEqual([0, 1, 2]);
});
