import { SignJWT } from 'jose';
import { describe, expect, it } from 'vitest';
import { startApi, tryWebSocket } from '../support.js';
import { changed, jwtIn } from './support.js';

const api = await startApi({ pools: [{ size: 2 }], quirks: { liveViewsHeadless: true } });
const { port } = new URL(api.pool.baseUrl);
const [one, two] = [await api.lease(), await api.lease()];
const replaysPath = `/browsers/${one.session_id}/replays`;
const replay = (await api.call('POST', replaysPath, { body: {} })).body as { replay_view_url: string };

const dashboard = api.pool.dashboardUrl;
const live = one.browser_live_view_url!;
const view = replay.replay_view_url;
const facts = view.replace('/view?', '/facts?');
const video = view.replace('/view?', '/video?');

/** Every link that a jwt opens. */
const LINKS = { dashboard, live, view, facts, video };
const JWTS = {
  dashboard: jwtIn(dashboard),
  live: jwtIn(live),
  replay: jwtIn(view),
  cdp: jwtIn(one.cdp_ws_url),
  bidi: jwtIn(one.webdriver_ws_url),
  'live of another session': jwtIn(two.browser_live_view_url!),
};

describe.each(Object.entries(LINKS))('the link %s', (name, url) => {
  const own = name === 'dashboard' || name === 'live' ? name : 'replay';

  it('opens with its own jwt, and without the access token', async () => {
    // The video does not exist while the recording runs.
    expect(await statusOf(url)).toBe(name === 'video' ? 404 : 200);
  });

  it('is refused with the jwt of another link, and with a missing, broken, unsigned or forged jwt', async () => {
    const [, claims] = jwtIn(url).split('.');
    const none = Buffer.from(JSON.stringify({ alg: 'none' })).toString('base64url');
    const payload = JSON.parse(Buffer.from(claims!, 'base64url').toString()) as Record<string, string>;
    const forged = await new SignJWT(payload).setProtectedHeader({ alg: 'HS256' }).sign(new Uint8Array(32));
    const { [own]: _own, ...others } = JWTS;
    const attacks = {
      ...others,
      missing: '',
      broken: `${jwtIn(url).slice(0, -3)}AAA`,
      unsigned: `${none}.${claims}.`,
      forged,
      token: api.pool.token,
    };
    for (const [attack, jwt] of Object.entries(attacks)) {
      expect([attack, await statusOf(changed(url, { jwt }))]).toEqual([attack, 401]);
    }
  });

  it('is refused for a foreign Host or Origin', async () => {
    expect(await statusOf(url, { host: `evil.example:${port}` })).toBe(403);
    expect(await statusOf(url, { origin: 'https://evil.example' })).toBe(403);
  });

  it('is sent with headers that isolate it from other sites', async () => {
    const headers = (await fetch(url)).headers;
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('cross-origin-resource-policy')).toBe('same-origin');
    const policy = headers.get('content-security-policy')!;
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain('unsafe');
  });
});

it('opens no WebSocket with the jwt of another link', async () => {
  const sockets = {
    live: live.replace(/^http/, 'ws'),
    dashboard: dashboard.replace(/^http/, 'ws'),
    cdp: one.cdp_ws_url,
  };
  for (const [socket, url] of Object.entries(sockets)) {
    for (const [jwt, value] of Object.entries(JWTS)) {
      const { outcome, socket: opened } = await tryWebSocket(changed(url, { jwt: value }));
      expect([socket, jwt, outcome]).toEqual([socket, jwt, socket === jwt ? 'open' : 401]);
      opened.terminate();
    }
    expect((await tryWebSocket(url, { origin: 'https://evil.example' })).outcome).toBe(403);
    expect((await tryWebSocket(url, { host: `evil.example:${port}` })).outcome).toBe(403);
  }
});

it('shows only the recording of its jwt', async () => {
  const other = (await api.call('POST', replaysPath, { body: {} })).body as { replay_id: string };
  expect(await statusOf(changed(view, { replay_id: other.replay_id }))).toBe(401);
  expect(await statusOf(changed(view, {}, `/browsers/${two.session_id}/replays/view`))).toBe(401);
});

it('shows a person a page about an invalid link, without the jwt', async () => {
  const response = await fetch(changed(view, { jwt: 'old' }), { headers: { accept: 'text/html' } });
  expect(response.status).toBe(401);
  expect(response.headers.get('content-type')).toContain('text/html');
  const text = await response.text();
  expect(text).toContain('no longer valid');
  expect(text).not.toContain('old');
});

it('serves its scripts and styles, and no other files', async () => {
  for (const file of ['base.css', 'icon.svg', 'replay.js', 'live.js', 'dashboard.js']) {
    expect([file, (await fetch(`${api.pool.baseUrl}/pages/${file}`)).status]).toEqual([file, 200]);
  }
  for (const path of [
    '/pages/nothing.js',
    '/pages/replay.d.ts',
    '/pages/..%2f..%2findex.js',
    '/pages/package.json',
  ]) {
    expect([path, (await api.call('GET', path)).status]).toEqual([path, 404]);
  }
});

async function statusOf(url: string, headers: Record<string, string> = {}): Promise<number> {
  const { pathname, search } = new URL(url);
  // Without the access token, only the jwt counts.
  return await api.status(`${pathname}${search}`, { authorization: '', ...headers });
}
