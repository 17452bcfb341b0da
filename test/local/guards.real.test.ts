import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { SignJWT } from 'jose';
import { describe, expect, it } from 'vitest';
import { sendHead } from '../support/fault-road.js';
import { processesOf } from '../support/processes.js';
import { changed, jwtIn } from './pages/support.js';
import { ask, startApi, tryWebSocket } from './support.js';

const api = await startApi({ pools: [{ size: 2 }] });
const { host, port } = new URL(api.pool.baseUrl);
const path = '/browser_pools/default';

describe('the access token', () => {
  it.each([
    undefined,
    '',
    'Bearer',
    'Bearer wrong-token',
    `Bearer ${api.pool.token}x`,
    `Basic ${api.pool.token}`,
    api.pool.token,
  ])('is required, in place of %j', async (authorization) => {
    // Also before the path is looked up.
    for (const asked of [path, '/nowhere']) {
      const reply = await api.call('GET', asked, { headers: { authorization } });
      expect(reply).toMatchObject({ status: 401, body: { code: 'unauthorized' } });
      expect(reply.headers['x-request-id']).toBeDefined();
    }
  });
});

describe('Host and Origin', () => {
  it.each([
    { host: `127.0.0.1:${port}` },
    { host: `localhost:${port}` },
    { host: `LOCALHOST:${port}` },
    { host: 'localhost' },
    { origin: api.pool.baseUrl },
  ])('accept %j', async (headers) => {
    expect((await api.call('GET', path, { headers })).status).toBe(200);
  });

  it.each([
    { host: 'evil.example' },
    { host: `evil.example:${port}` },
    { host: 'localhost:1' },
    { host: '127.0.0.1:1' },
    { host: `127.0.0.1.evil.example:${port}` },
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: `http://evil.example:${port}` },
    { origin: `https://${host}` },
  ])('refuse %j, also with the right token', async (headers) => {
    const reply = await api.call('GET', path, { headers });
    expect(reply).toMatchObject({ status: 403, body: { code: 'forbidden' } });
  });

  it('are also checked for WebSockets', async () => {
    const session = await api.lease();
    const forbidden = { outcome: 403, body: { code: 'forbidden' } };
    for (const url of [session.cdp_ws_url, session.webdriver_ws_url]) {
      expect(await tryWebSocket(url, { origin: 'https://evil.example' })).toMatchObject(forbidden);
      expect(await tryWebSocket(url, { host: `evil.example:${port}` })).toMatchObject(forbidden);
    }
    await api.release(session);
  });
});

describe('the jwt of a WebSocket URL', () => {
  it('is refused when it is missing, broken, unsigned, signed with another key, or of another URL', async () => {
    const [one, two] = [await api.lease(), await api.lease()];
    const good = jwtIn(one.cdp_ws_url);
    const [, claims] = good.split('.');
    const payload = JSON.parse(Buffer.from(claims!, 'base64url').toString()) as Record<string, string>;
    const forged = await new SignJWT(payload).setProtectedHeader({ alg: 'HS256' }).sign(new Uint8Array(32));
    const none = Buffer.from(JSON.stringify({ alg: 'none' })).toString('base64url');
    const attacks = {
      missing: '',
      broken: `${good.slice(0, -3)}AAA`,
      unsigned: `${none}.${claims}.`,
      forged,
      'of another session': jwtIn(two.cdp_ws_url),
      'for BiDi': jwtIn(one.webdriver_ws_url),
      'the access token': api.pool.token,
    };
    for (const [attack, jwt] of Object.entries(attacks)) {
      const { outcome, body } = await tryWebSocket(changed(one.cdp_ws_url, { jwt }));
      expect([attack, outcome, body.code]).toEqual([attack, 401, 'unauthorized']);
    }
    expect((await tryWebSocket(changed(one.webdriver_ws_url, { jwt: good }))).outcome).toBe(401);
    await Promise.all([api.release(one), api.release(two)]);
  });

  it('is refused after the end of its lease, although the session still exists', async () => {
    const [before, other] = [await api.lease(), await api.lease()];
    await api.release(before);
    const after = await api.lease();
    expect(after.session_id).toBe(before.session_id);
    for (const name of ['cdp_ws_url', 'webdriver_ws_url'] as const) {
      expect((await tryWebSocket(before[name])).outcome).toBe(401);
      const { outcome, socket } = await tryWebSocket(after[name]);
      expect(outcome).toBe('open');
      socket.terminate();
    }
    await Promise.all([api.release(after), api.release(other)]);
  });

  it('opens no other path', async () => {
    const session = await api.lease();
    const url = changed(session.cdp_ws_url, {}, '/elsewhere');
    expect(await tryWebSocket(url)).toMatchObject({ outcome: 404, body: { code: 'not_found' } });
    await api.release(session);
  });
});

it('answers a message that is no command with an error', async () => {
  const session = await api.lease();
  const { socket } = await tryWebSocket(session.cdp_ws_url);
  const large = `"params":{"a":"${'A'.repeat(2e6)}"}`;
  const head = '"id":1,"method":"Browser.getVersion"';
  for (const message of [
    '{',
    '[]',
    '{"id":"1","method":"Browser.getVersion"}',
    `{${head},${large}`,
    `{${head},${large}}\0{${head}}`,
    `{${head},${large.slice(0, -1)}/*"*/},"sessionId":""/*"*/}}`,
    `{${head},${large},"id":2}`,
    `{${head},${large},"i\\u0064":2}`,
  ])
    expect(await ask(socket, message)).toMatchObject({ error: { code: -32_600 } });
  const version = { id: 1, method: 'Browser.getVersion' };
  expect(await ask(socket, version)).toMatchObject({ id: 1, result: { product: expect.any(String) } });
  for (const order of [`${head},${large}`, `${large},${head}`])
    expect(await ask(socket, `{${order}}`)).toMatchObject({ id: 1, result: {} });
  socket.terminate();
  await api.release(session);
});

it.each(['cdp_ws_url', 'webdriver_ws_url'] as const)(
  'disconnects a client of %s with a message above a limit, and the reason; another client continues',
  async (url) => {
    const session = await api.lease();
    const { socket: other } = await tryWebSocket(session.cdp_ws_url);
    const contents = {
      '1009 A message may have 100 MiB.': 101 * 1024 * 1024,
      '1009 A message may have 500,000 values and names.': `[${'[],'.repeat(251_000)}0]`,
      '1009 A message may have 1,000 levels.': '['.repeat(1e6) + ']'.repeat(1e6),
    };
    for (const [reason, content] of Object.entries(contents)) {
      const { socket } = await tryWebSocket(session[url]);
      socket.removeAllListeners('error').on('error', () => {});
      const closing = once(socket, 'close');
      if (typeof content === 'number') sendHead(socket, content);
      else socket.send(`{"id":1,"method":"Browser.getVersion","params":${content}}`);
      const [code, given] = await closing;
      expect(`${code} ${String(given)}`).toContain(reason);
    }
    const version = { id: 1, method: 'Browser.getVersion' };
    expect(await ask(other, version)).toMatchObject({ id: 1, result: { product: expect.any(String) } });
    other.terminate();
    await api.release(session);
  },
);

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
