import { describe, expect, it } from 'vitest';
import { startApi, tryWebSocket } from '../support.js';
import { Replays } from '../replays/support.js';
import { changed, jwtIn, tokenIn } from './support.js';

const api = await startApi({
  pools: [{ size: 2, timeoutSeconds: 600 }],
  quirks: { liveViewsHeadless: true },
});
const { port } = new URL(api.pool.baseUrl);
const [one, two] = [await api.lease(), await api.lease()];
const replays = new Replays(api);
for (let count = 0; count < 2; count++) await replays.ask(one);
const [view, other] = (await replays.list(one)).map(({ replay_view_url }) => replay_view_url!) as [
  string,
  string,
];

const dashboard = api.pool.dashboardUrl;
const live = one.browser_live_view_url!;
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

  it('is refused with a missing, changed or other token, and for a foreign Host or Origin', async () => {
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
    // Also with the right token.
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
  const links = [view, other, live, two.browser_live_view_url!, dashboard];
  expect(new Set(links.map(tokenIn)).size).toBe(links.length);
});

it('writes no token into its log', async () => {
  await fetch(dashboard);
  expect(api.events).toContainEqual({ type: 'request', method: 'GET', path: '/', status: 200 });
  for (const link of Object.values(LINKS)) expect(JSON.stringify(api.events)).not.toContain(tokenIn(link));
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

describe.each(['release', 'destroy'])('a request of the dashboard to %s a lease', (action) => {
  const { search } = new URL(dashboard);
  const body = { session_id: two.session_id };
  const post = (query: string, headers: Record<string, string> = {}) =>
    api.call('POST', `/dashboard/${action}${query}`, { body, headers: { authorization: '', ...headers } });

  it('is refused without the token of the dashboard, from another origin, and with GET', async () => {
    for (const query of ['', '?token=', `?token=${tokenIn(live)}`, `?token=${tokenIn(view)}`])
      expect([query, (await post(query)).status]).toEqual([query, 401]);
    expect((await post(search, { origin: 'https://evil.example' })).status).toBe(403);
    expect(await api.status(`/dashboard/${action}${search}`)).toBe(401);
  });

  it('ends no other lease than the one that is seen', async () => {
    const { status, body: answer } = await post(search, { origin: api.pool.baseUrl });
    const message = expect.stringContaining('has ended meanwhile');
    expect({ status, ...answer }).toMatchObject({ status: 409, message });
    expect((await api.record()).acquired_count).toBe(2);
  });
});

it.each([
  ...['base.css', 'icon.svg', 'replay.js', 'live.js', 'dashboard.js'].map((file) => [file, 200] as const),
  ...['nothing.js', 'replay.d.ts', '..%2f..%2findex.js', 'package.json'].map((file) => [file, 404] as const),
])('answers the request for the file %s with %i', async (file, status) => {
  expect((await api.call('GET', `/pages/${file}`)).status).toBe(status);
});

async function statusOf(url: string, headers: Record<string, string> = {}): Promise<number> {
  const { pathname, search } = new URL(url);
  // Without the access token, only the token of the link counts.
  return await api.status(`${pathname}${search}`, { authorization: '', ...headers });
}
