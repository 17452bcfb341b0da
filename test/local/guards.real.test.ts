import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { SignJWT } from 'jose';
import { describe, expect, it } from 'vitest';
import { processesOf } from '../support/processes.js';
import { startApi, tryWebSocket } from './support.js';

const api = await startApi({ pools: [{ size: 2 }] });
const { host, port } = new URL(api.pool.baseUrl);
const path = '/browser_pools/default';

describe('the access token', () => {
  it.each([
    {},
    { authorization: '' },
    { authorization: 'Bearer' },
    { authorization: 'Bearer wrong-token' },
    { authorization: `Bearer ${api.pool.token}x` },
    { authorization: `Basic ${api.pool.token}` },
    { authorization: api.pool.token },
  ])('is required: %j', async (headers) => {
    const reply = await api.call('GET', path, { headers: { authorization: 'none', ...headers } });
    expect(reply).toMatchObject({ status: 401, body: { code: 'unauthorized' } });
    expect(reply.headers['x-request-id']).toBeDefined();
  });

  it('is checked before the path', async () => {
    const headers = { authorization: 'Bearer wrong-token' };
    expect((await api.call('GET', '/nowhere', { headers })).status).toBe(401);
  });
});

describe('Host and Origin', () => {
  it.each([`127.0.0.1:${port}`, `localhost:${port}`, `LOCALHOST:${port}`])(
    'accepts Host %s',
    async (name) => {
      expect((await api.call('GET', path, { headers: { host: name } })).status).toBe(200);
    },
  );

  it.each([
    'evil.example',
    `evil.example:${port}`,
    'localhost',
    '127.0.0.1:1',
    `127.0.0.1.evil.example:${port}`,
  ])('refuses Host %s, also with the right token', async (name) => {
    const reply = await api.call('GET', path, { headers: { host: name } });
    expect(reply).toMatchObject({ status: 403, body: { code: 'forbidden' } });
  });

  it('accepts its own Origin', async () => {
    expect((await api.call('GET', path, { headers: { origin: api.pool.baseUrl } })).status).toBe(200);
  });

  it.each(['https://evil.example', 'null', `http://evil.example:${port}`, `https://${host}`])(
    'refuses Origin %s',
    async (origin) => {
      expect((await api.call('GET', path, { headers: { origin } })).status).toBe(403);
    },
  );

  it('are also checked for WebSockets', async () => {
    const session = await api.lease();
    for (const url of [session.cdp_ws_url, session.webdriver_ws_url]) {
      expect(await tryWebSocket(url, { origin: 'https://evil.example' })).toMatchObject({
        outcome: 403,
        body: { code: 'forbidden' },
      });
      expect((await tryWebSocket(url, { host: `evil.example:${port}` })).outcome).toBe(403);
    }
    await api.release(session);
  });
});

describe('the jwt of a WebSocket URL', () => {
  it('opens the WebSocket for which it was signed', async () => {
    const session = await api.lease();
    for (const url of [session.cdp_ws_url, session.webdriver_ws_url]) {
      const { outcome, socket } = await tryWebSocket(url);
      expect(outcome).toBe('open');
      socket.terminate();
    }
    await api.release(session);
  });

  it('is refused when it is missing, broken, unsigned, signed with another key, or of another URL', async () => {
    const [one, two] = [await api.lease(), await api.lease()];
    const url = new URL(one.cdp_ws_url);
    const good = url.searchParams.get('jwt')!;
    const [, claims] = good.split('.');
    const of = (address: string) => new URL(address).searchParams.get('jwt')!;
    const payload = JSON.parse(Buffer.from(claims!, 'base64url').toString()) as Record<string, string>;
    const forged = await new SignJWT(payload).setProtectedHeader({ alg: 'HS256' }).sign(new Uint8Array(32));
    const none = Buffer.from(JSON.stringify({ alg: 'none' })).toString('base64url');
    const attacks = {
      missing: '',
      broken: `${good.slice(0, -3)}AAA`,
      unsigned: `${none}.${claims}.`,
      forged,
      'of another session': of(two.cdp_ws_url),
      'for BiDi': of(one.webdriver_ws_url),
      'the access token': api.pool.token,
    };
    for (const [attack, jwt] of Object.entries(attacks)) {
      url.searchParams.set('jwt', jwt);
      const { outcome, body } = await tryWebSocket(String(url));
      expect([attack, outcome, body.code]).toEqual([attack, 401, 'unauthorized']);
    }
    const bidi = new URL(one.webdriver_ws_url);
    bidi.searchParams.set('jwt', good);
    expect((await tryWebSocket(String(bidi))).outcome).toBe(401);
    await Promise.all([api.release(one), api.release(two)]);
  });

  it('is refused after the end of its lease, although the session still exists', async () => {
    const before = await api.lease();
    const other = await api.lease();
    await api.release(before);
    const after = await api.lease();
    expect(after.session_id).toBe(before.session_id);
    expect((await tryWebSocket(before.cdp_ws_url)).outcome).toBe(401);
    expect((await tryWebSocket(before.webdriver_ws_url)).outcome).toBe(401);
    const { outcome, socket } = await tryWebSocket(after.cdp_ws_url);
    expect(outcome).toBe('open');
    socket.terminate();
    await Promise.all([api.release(after), api.release(other)]);
  });

  it('opens no other path', async () => {
    const session = await api.lease();
    const url = new URL(session.cdp_ws_url);
    url.pathname = '/elsewhere';
    expect(await tryWebSocket(String(url))).toMatchObject({ outcome: 404, body: { code: 'not_found' } });
    await api.release(session);
  });
});

it('starts browsers that listen on no port', async () => {
  await api.lease();
  const browsers = processesOf(process.env['TMPDIR']!).filter(({ command }) => /chrom/i.test(command));
  expect(browsers.length).toBeGreaterThan(1);
  expect(browsers.filter(({ command }) => command.includes('--remote-debugging-port'))).toEqual([]);
  const listening = new Set(['tcp', 'tcp6'].flatMap(listeningSockets));
  expect(listening.size).toBeGreaterThan(0);
  expect(browsers.filter(({ pid }) => socketsOf(pid).some((socket) => listening.has(socket)))).toEqual([]);
});

/** Inodes of the sockets that accept connections on this machine. */
function listeningSockets(table: string): string[] {
  const rows = readFileSync(`/proc/net/${table}`, 'utf8').trim().split('\n').slice(1);
  const LISTEN = '0A';
  return rows
    .map((row) => row.trim().split(/\s+/))
    .flatMap((cells) => (cells[3] === LISTEN ? [cells[9]!] : []));
}

function socketsOf(pid: number): string[] {
  try {
    const files = readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`));
    return files.flatMap((file) => /^socket:\[(\d+)\]$/.exec(file)?.[1] ?? []);
  } catch {
    // The process has ended.
    return [];
  }
}
