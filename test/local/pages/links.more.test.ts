import { describe, expect, it } from 'vitest';
import { startApi, tryWebSocket } from '../support.js';
import { changed, jwtIn, tokenIn } from './support.js';

const api = await startApi({
  pools: [{ size: 2, timeoutSeconds: 600 }],
  quirks: { liveViewsHeadless: true },
});
const { port } = new URL(api.pool.baseUrl);
const [one, two] = [await api.lease(), await api.lease()];
const replaysPath = `/browsers/${one.session_id}/replays`;
const replay = (await api.call('POST', replaysPath, { body: {} })).body as { replay_view_url: string };
const other = (await api.call('POST', replaysPath, { body: {} })).body as { replay_view_url: string };

const dashboard = api.pool.dashboardUrl;
const live = one.browser_live_view_url!;
const view = replay.replay_view_url;
const part = (name: string) => view.replace('/replay?', `/replay/${name}?`);

/** Every link that a token opens. */
const LINKS = {
  dashboard,
  live,
  liveFacts: live.replace('/live?', '/live/facts?'),
  view,
  facts: part('facts'),
  poster: part('poster'),
  video: part('video'),
};
const TOKENS = {
  dashboard: tokenIn(dashboard),
  live: tokenIn(live),
  replay: tokenIn(view),
  cdp: jwtIn(one.cdp_ws_url),
  bidi: jwtIn(one.webdriver_ws_url),
};

describe.each(Object.entries(LINKS))('the link %s', (name, url) => {
  const own = (['dashboard', 'live'] as const).find((one) => name.startsWith(one)) ?? 'replay';

  it('is short, cannot be guessed, and opens without the access token', async () => {
    expect(url.length).toBeLessThan(80);
    // 128 random bits.
    expect(tokenIn(url)).toMatch(/^[0-9a-f]{32}$/);
    // The video and its poster do not exist while the recording runs.
    expect([200, 404]).toContain(await statusOf(url));
    if (name !== 'video' && name !== 'poster') expect(await statusOf(url)).toBe(200);
  });

  it('is refused with the token of another link, and with a missing or changed token', async () => {
    const { [own]: _own, ...others } = TOKENS;
    const attacks = {
      ...others,
      missing: '',
      shortened: tokenIn(url).slice(0, -1),
      changed: tokenIn(url).replace(/.$/, (last) => (last === '0' ? '1' : '0')),
      token: api.pool.token,
    };
    for (const [attack, token] of Object.entries(attacks)) {
      expect([attack, await statusOf(changed(url, { token }))]).toEqual([attack, 401]);
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

it('opens no WebSocket with the secret of another link', async () => {
  const sockets = {
    live: live.replace(/^http/, 'ws'),
    dashboard: dashboard.replace(/^http/, 'ws'),
    cdp: one.cdp_ws_url,
  };
  for (const [socket, url] of Object.entries(sockets)) {
    for (const [secret, value] of Object.entries(TOKENS)) {
      const { outcome, socket: opened } = await tryWebSocket(changed(url, { token: value, jwt: value }));
      expect([socket, secret, outcome]).toEqual([socket, secret, socket === secret ? 'open' : 401]);
      opened.terminate();
    }
    expect((await tryWebSocket(url, { origin: 'https://evil.example' })).outcome).toBe(403);
    expect((await tryWebSocket(url, { host: `evil.example:${port}` })).outcome).toBe(403);
  }
});

it('has links of their own for each recording and each lease', () => {
  const links = [view, other.replay_view_url, live, two.browser_live_view_url!, dashboard];
  expect(new Set(links.map(tokenIn)).size).toBe(links.length);
});

it('writes no token into its log', async () => {
  const events: unknown[] = [];
  const logging = await startApi({ onLog: (event) => events.push(event) });
  await fetch(logging.pool.dashboardUrl);
  expect(events).toContainEqual({ type: 'request', method: 'GET', path: '/', status: 200 });
  expect(JSON.stringify(events)).not.toContain(tokenIn(logging.pool.dashboardUrl));
});

it.each(['/?token=old', '/live?token=old', '/replay?token=old'])(
  'shows a person what to do about the dead link %s, without its token',
  async (path) => {
    const response = await fetch(`${api.pool.baseUrl}${path}`, { headers: { accept: 'text/html' } });
    expect(response.status).toBe(401);
    expect(response.headers.get('content-type')).toContain('text/html');
    const text = await response.text();
    expect(text).toMatch(/This link to .* is incomplete, or/);
    expect(text).toMatch(/dashboard/);
    expect(text).not.toContain('token=old');
  },
);

describe('a request of the dashboard to end a lease', () => {
  const url = new URL(dashboard);
  const body = { session_id: two.session_id };
  const post = (path: string, headers: Record<string, string> = {}) =>
    api.call('POST', `/dashboard/${path}`, { body, headers: { authorization: '', ...headers } });

  it.each(['release', 'destroy'])('to %s is refused without the token of the dashboard', async (action) => {
    for (const query of ['', '?token=', `?token=${tokenIn(live)}`, `?token=${tokenIn(view)}`])
      expect([query, (await post(`${action}${query}`)).status]).toEqual([query, 401]);
  });

  it.each(['release', 'destroy'])('to %s is refused from another origin, and with GET', async (action) => {
    const headers = { origin: 'https://evil.example' };
    expect((await post(`${action}${url.search}`, headers)).status).toBe(403);
    expect(await api.status(`/dashboard/${action}${url.search}`)).toBe(401);
  });

  it.each(['release', 'destroy'])('to %s ends no other lease than the one that is seen', async (action) => {
    const { status, body: answer } = await post(`${action}${url.search}`, { origin: api.pool.baseUrl });
    expect({ status, ...answer }).toMatchObject({
      status: 409,
      message: expect.stringContaining('has ended meanwhile'),
    });
    expect((await api.record()).acquired_count).toBe(2);
  });
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
  // Without the access token, only the token of the link counts.
  return await api.status(`${pathname}${search}`, { authorization: '', ...headers });
}
