import { expect, it, vi } from 'vitest';
import { JWT } from '../support/fake-service.js';
import { FaultBench } from '../support/fault-bench.js';
import { useLocalPool } from '../support/local.js';
import { EXAMPLE_TIMEOUT, Site, startExample } from './support.js';

vi.setConfig({ testTimeout: EXAMPLE_TIMEOUT });

const used = useLocalPool({ pools: [{ name: 'default', size: 1 }] });

it.each([
  ['jest', /Tests: +1 failed, 1 passed/],
  ['node-test', /pass 1\n.*fail 1/],
])('%s: leases one browser for the file, and prints the replay of the failed test', async (name, summary) => {
  await using bench = await FaultBench.start(used.local);
  const link = `https://view.example/replay?jwt=${JWT}&replay_id=r-1`;
  const replay = { replay_id: 'r-1', replay_view_url: link };
  bench.service.script('replays', { status: 200, json: [] }, { status: 200, json: [replay] });
  const runner = startExample(name, bench.service.options);
  const { code, stdout, stderr } = await runner.ended;
  const output = stdout + stderr;
  expect(code).toBe(0);
  expect(output).toMatch(summary);
  expect(output).toContain(`Replay of "the shop sells flowers": ${link}`);
  expect(output).not.toContain('Replay of "the shop has a name"');
  expect(bench.granted.size).toBe(1);
  expect(bench.service.released).toEqual([...bench.granted]);
});

it('other-library: chrome-remote-interface drives a leased browser through its own connector', async () => {
  await using site = await Site.saying('<title>Third library</title>');
  const before = used.local.stats();
  const example = startExample('other-library', used.local, [site.url]);
  const stdout = 'chrome-remote-interface read: Third library\nThe browser was reused.\n';
  expect(await example.ended).toEqual({ code: 0, stdout, stderr: '' });
  expect(used.local.stats()).toMatchObject({ granted: before.granted + 1, leased: 0 });
  await example.leavesNothing();
});

it('crawlee: crawls with leased browsers, and releases all of them', async () => {
  await using site = await Site.open((request, response) => {
    const title = `<title>${request.url}</title>`;
    response.setHeader('content-type', 'text/html').end(`${title}<a href="/a">a</a><a href="/b">b</a>`);
  });
  const before = used.local.stats();
  const crawler = startExample('crawlee', used.local, [`${site.url}/`]);
  const stdout = 'Crawled: /, /a, /b\nLeases released: 1, still held: 0\n';
  expect(await crawler.ended).toEqual({ code: 0, stdout, stderr: '' });
  expect(used.local.stats()).toMatchObject({ granted: before.granted + 1, leased: 0 });
  await crawler.leavesNothing();
});
