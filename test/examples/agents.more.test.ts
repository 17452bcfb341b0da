import { expect, it } from 'vitest';
import { FaultBench } from '../support/fault-bench.js';
import { JWT, reply } from '../support/fake-service.js';
import { useLocalPool } from '../support/local.js';
import { argumentsOf, Site, startExample } from './support.js';

const used = useLocalPool({ pools: [{ name: 'default', size: 1 }] });

it('ai-agent: the agent reports the text of the page, and prints the links', async () => {
  await using site = await Site.open((_request, response) =>
    response.setHeader('content-type', 'text/html').end('<title>Opening hours</title>Open from 9 to 5.'),
  );
  await using bench = await FaultBench.start(used.local);
  const liveView = `https://view.example/live?jwt=${JWT}`;
  const replay = {
    replay_id: 'r-1',
    replay_view_url: `https://view.example/replay?jwt=${JWT}&replay_id=r-1`,
  };
  bench.service.script('acquire', async (response) => {
    const json = { ...(await bench.lend()), headless: false, browser_live_view_url: liveView };
    reply(response, { status: 200, json });
  });
  bench.service.script('replays', { status: 200, json: [] }, { status: 200, json: [replay] });
  const agent = startExample('ai-agent/main', bench.service.options, [site.url]);
  expect(await agent.ended).toEqual({
    code: 0,
    stdout: [
      `Watch it live: ${liveView}`,
      'The agent said, after 2 steps: The page is called "Opening hours", and says: Open from 9 to 5.',
      `Replay: ${replay.replay_view_url}`,
      'The browser was reused.\n',
    ].join('\n'),
    stderr: '',
  });
  expect(bench.released).toEqual(bench.granted);
  await agent.leavesNothing();
});

it('agent-session: the lease survives a reset connection, and goes to another process through a pipe', async () => {
  await using bench = await FaultBench.start(used.local);
  let visits = 0;
  let shown = '';
  await using site = await Site.open((request, response) => {
    if (request.url !== '/address' && request.url !== '/payment') return response.writeHead(404).end();
    shown += argumentsOf(agents);
    // The first visit to the payment never ends: the connection breaks while it is under way.
    if (request.url === '/payment' && ++visits === 1) return bench.road.lose('reset');
    return response.setHeader('content-type', 'text/html').end(`<title>${request.url}</title>`);
  });
  const agents = startExample('agent-session/main', bench.service.options, [
    `${site.url}/address`,
    `${site.url}/payment`,
  ]);
  expect(await agents.ended).toEqual({
    code: 0,
    stdout: '',
    stderr: [
      'first: opened /address',
      'first: connection-dropped',
      'first: reconnected',
      'first: opened /payment',
      'first: detached the browser',
      'second: found /payment',
      'second: done, the browser was reused\n',
    ].join('\n'),
  });
  expect(visits).toBe(2);
  expect(bench.granted.size).toBe(1);
  expect(bench.service.released).toEqual([...bench.granted]);
  expect(shown).toContain('second.ts');
  expect(shown).not.toContain(JWT);
  expect(shown).not.toContain('pooled-browser-lease-');
  await agents.leavesNothing();
});

it('mcp: the servers of mcp.json lease at the first call, release when idle, and get no secret', async () => {
  let shown = '';
  await using site = await Site.open((_request, response) => {
    shown += argumentsOf(client);
    response.setHeader('content-type', 'text/html').end('<title>Shop</title><h1>Welcome</h1>');
  });
  const before = used.local.stats();
  const client = startExample('mcp/main', used.local, [site.url]);
  const { code, stdout } = await client.ended;
  expect({ code, shop: stdout.match(/heading "Welcome"|Shop \(http/g) }).toEqual({
    code: 0,
    shop: ['heading "Welcome"', 'Shop (http', 'heading "Welcome"'],
  });
  expect(stdout).toContain('This is a new browser.');
  expect(shown).toMatch(/mcp\/cli\.js[^]*chrome-devtools-mcp[^]*--lazy/);
  expect(shown).not.toMatch(/jwt|eyJ/);
  expect(shown).not.toContain(used.local.token);
  expect(used.local.stats()).toMatchObject({ granted: before.granted + 4, leased: 0 });
  // A folder of the server may stay, but no process.
  await expect.poll(() => argumentsOf(client)).toBe('');
});
