import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTask } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { DownloadWatch } from '../../src/connect/downloads.js';
import { MessageFilter } from '../../src/connect/message-filter.js';
import { Socket } from '../../src/connect/socket.js';
import { ExposedNetwork } from '../../src/features/exposed-network/exposed-network.js';
import { Fuzzer } from '../support/cdp-fuzz.js';
import { PlayedBrowser } from '../support/played-browser.js';
import { Random } from '../support/random.js';

const SEED = 1;
const MESSAGES = Number(process.env['MESSAGES'] ?? 500);
const CANARY = 'the content of the canary file';

it(`touches no host and no file that a browser names, whatever it sends (${MESSAGES} messages, seed ${SEED})`, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'hostile-'));
  const canary = join(folder, 'canary');
  await writeFile(canary, CANARY);
  let connections = 0;
  const trap = createServer((socket) => {
    connections++;
    socket.destroy();
  }).listen(0, '127.0.0.2');
  await once(trap, 'listening');
  const host = `127.0.0.2:${(trap.address() as AddressInfo).port}`;
  const texts = [
    `http://${host}/`,
    `http://${host}?@localhost:1/`,
    `ws://${host}\\@localhost:1/`,
    canary,
    `../..${canary}`,
  ];
  const fuzzer = new Fuzzer(new Random(SEED), texts);
  await using browser = await PlayedBrowser.start();
  const arrived: string[] = [];
  browser.onText = (text, page) => {
    const { id, sessionId } = JSON.parse(text) as { id: number; sessionId?: string };
    const ids = { browserContextId: 'c', targetId: 't', sessionId: 's', targetInfos: [] };
    const result = { ...ids, result: { objectId: 'o', value: { size: 3, lastModified: 1 } } };
    for (const one of change(JSON.stringify({ id, result, sessionId }))) page.send(one);
  };
  const change = fuzzer.connection();
  while (fuzzer.changed < MESSAGES) {
    const { socket, client } = await browser.connect();
    const filter = new MessageFilter(socket);
    socket.tap = filter;
    const openCdp = (signal: AbortSignal) => Socket.open(new URL(browser.url), signal);
    const listener = {
      maxSize: 10,
      begun: () => {},
      progressed: () => {},
      failed: () => {},
      arrived: async (_download: unknown, path: string) => void arrived.push(await readFile(path, 'utf8')),
    };
    const watch = new DownloadWatch({ socket, filter, openCdp, isElsewhere: false, listener });
    const plan = { hosts: 'localhost:1', acceptsInsecureCerts: false, open: openCdp, filter };
    const exposed = new ExposedNetwork({ ...plan, onRequest: () => {}, onLost: () => {} });
    await exposed.open(AbortSignal.timeout(500)).catch(() => {});
    const behavior = { behavior: 'allowAndName', downloadPath: folder, eventsEnabled: true };
    socket.send(JSON.stringify({ id: 1, method: 'Browser.setDownloadBehavior', params: behavior }));
    const event = JSON.stringify({
      method: 'Page.frameNavigated',
      params: { frame: { id: 'f', url: 'about:blank' } },
    });
    for (let sent = 0; sent < 100; sent++) {
      for (const text of change(event))
        for (const one of browser.clients) if (one.readyState === one.OPEN) one.send(text);
      if (sent % 10 === 0) await nextTask();
    }
    await watch.isOneComing().catch(() => {});
    exposed.cut();
    socket.cut('closed-by-us');
    client.terminate();
    browser.cut();
    await socket.ended;
  }
  expect({ connections, stolen: arrived.filter((text) => text.includes(CANARY)) }).toEqual({
    connections: 0,
    stolen: [],
  });
  expect(await readFile(canary, 'utf8')).toBe(CANARY);
  trap.close();
  await rm(folder, { recursive: true });
});
