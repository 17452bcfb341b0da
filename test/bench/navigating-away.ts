/**
 * `npm run bench -- navigating-away`: what keeps WebRTC from a page whose navigation fails. For some tens of milliseconds its old document
 * goes on, in which the script that takes WebRTC away no longer runs. For each way that the Chrome DevTools Protocol has, and for the two
 * flags: the visits of RUNS (default 8) in which the page had WebRTC, and those that sent UDP packets. The navigation fails at a host that does
 * not answer, which a client can hold, or at a blob that does not exist, which no client can.
 */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { NO_UDP } from '../../src/local/browser/chromium-flags.js';
import { startChromium } from '../support/chromium.js';
import { printTable, setting } from './bench.js';

const RUNS = setting('RUNS', 8);
/** Nothing listens there. */
const NO_HOST = 'http://127.0.0.1:1/';
const WEBRTC = ['RTCPeerConnection', 'webkitRTCPeerConnection'];
const WITHOUT = WEBRTC.map((name) => `delete globalThis.${name};`).join('');

type Send = (method: string, params?: object, sessionId?: string) => Promise<Record<string, string>>;
interface Prepared {
  readonly send: Send;
  readonly session: string;
  readonly browserContextId: string;
}
interface Way {
  readonly flags?: readonly string[];
  /** Before the page opens. */
  prepare?(page: Prepared): Promise<unknown>;
  /** While the navigation is held, before it fails. Resolves to the error with which it fails instead. */
  hold?(page: Prepared): Promise<string | void>;
}

const LOSS = { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: -1, packetLoss: 100 };
const WAYS: Readonly<Record<string, Way>> = {
  nothing: {},
  'lost packets (Network.emulateNetworkConditions)': {
    prepare: async ({ send, session }) => {
      await send('Network.enable', {}, session);
      await send('Network.emulateNetworkConditions', LOSS, session);
    },
  },
  // It does not say when the document has stopped: a script that would answer then does not run.
  'a frozen page (Page.setWebLifecycleState)': {
    hold: async ({ send, session }) => {
      await send('Page.setWebLifecycleState', { state: 'frozen' }, session);
      await sleep(100);
    },
  },
  'no scripts (Emulation.setScriptExecutionDisabled)': {
    hold: async ({ send, session }) =>
      void (await send('Emulation.setScriptExecutionDisabled', { value: true }, session)),
  },
  'a cancelled navigation (Fetch.failRequest)': { hold: async () => 'Aborted' },
  'a process for error pages that runs already': {
    prepare: async ({ send, browserContextId }) => {
      await send('Target.createTarget', { url: NO_HOST, browserContextId });
      await sleep(500);
    },
  },
  'the flags of both binaries': { flags: NO_UDP },
};

let packets = 0;
let hadWebRtc = false;
const udp = createSocket('udp4', () => packets++);
udp.bind(0, '127.0.0.1');
await once(udp, 'listening');
const server = createServer(({ url }, response) => {
  hadWebRtc ||= url === '/has-webrtc';
  response.setHeader('content-type', 'text/html').end(`<body><script>
    const busy = 'for (const began = Date.now(); Date.now() - began < 1500;);';
    for (let count = 0; count < 4; count++) new Worker(URL.createObjectURL(new Blob([busy])));
    const kept = [];
    setInterval(() => {
      const frame = document.createElement('iframe');
      document.body.append(frame);
      const { RTCPeerConnection } = frame.contentWindow;
      if (!RTCPeerConnection || kept.length > 40) return frame.remove();
      const connection = new RTCPeerConnection({ iceServers: [{ urls: 'stun:127.0.0.1:${udp.address().port}' }] });
      connection.createDataChannel('');
      kept.push(connection);
      connection.setLocalDescription();
      fetch('/has-webrtc', { keepalive: true });
    }, 5);
    setTimeout(() => { location.href = decodeURIComponent(location.hash.slice(1)); }, 300);
  </script>`);
});
await once(server.listen(0, '127.0.0.1'), 'listening');
const page = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;

interface Message {
  readonly id?: number;
  readonly result?: Record<string, string>;
  readonly method?: string;
  readonly params: { readonly requestId: string; readonly responseErrorReason?: string };
}

/** Opens the page once, with a guard that takes WebRTC from each of its documents. @param away Where it navigates to. */
async function visit(url: string, way: Way, away: string): Promise<void> {
  const socket = new WebSocket(url);
  await once(socket, 'open');
  const waiting: ((result: Record<string, string>) => void)[] = [];
  const send: Send = (method, params = {}, sessionId) =>
    new Promise((resolve) => {
      const id = waiting.push(resolve);
      socket.send(JSON.stringify({ id, method, params, sessionId }));
    });
  socket.on('message', (data: Buffer) => {
    const { id, result = {}, method, params } = JSON.parse(data.toString()) as Message;
    if (id !== undefined) waiting[id - 1]!(result);
    if (method === 'Fetch.requestPaused') void onPaused(params);
  });
  const { browserContextId = '' } = await send('Target.createBrowserContext');
  const { targetId } = await send('Target.createTarget', { url: 'about:blank', browserContextId });
  const { sessionId: session = '' } = await send('Target.attachToTarget', { targetId, flatten: true });
  const prepared = { send, session, browserContextId };
  const onPaused = async ({ requestId, responseErrorReason }: Message['params']) => {
    const errorReason = responseErrorReason === undefined ? undefined : await way.hold?.(prepared);
    if (errorReason === undefined) await send('Fetch.continueRequest', { requestId }, session);
    else await send('Fetch.failRequest', { requestId, errorReason }, session);
  };
  await send('Runtime.enable', {}, session);
  for (const name of WEBRTC) await send('Runtime.addBinding', { name }, session);
  await send('Page.enable', {}, session);
  await send('Page.addScriptToEvaluateOnNewDocument', { source: WITHOUT, runImmediately: true }, session);
  await way.prepare?.(prepared);
  const patterns = [{ resourceType: 'Document', requestStage: 'Response' }];
  if (way.hold) await send('Fetch.enable', { patterns }, session);
  await send('Page.navigate', { url: `${page}#${encodeURIComponent(away)}` }, session);
  await sleep(2000);
  await send('Target.disposeBrowserContext', { browserContextId });
  socket.close();
}

const DESTINATIONS = { 'a host': NO_HOST, 'a blob': `blob:${page}none` };
const rows: (string | number)[][] = [];
for (const [name, way] of Object.entries(WAYS))
  for (const [destination, away] of Object.entries(DESTINATIONS)) {
    await using browser = await startChromium(...(way.flags ?? []));
    const counts = { had: 0, sent: 0 };
    for (let run = 0; run < RUNS; run++) {
      packets = 0;
      hadWebRtc = false;
      await visit(browser.url, way, away);
      await sleep(200);
      if (hadWebRtc) counts.had++;
      if (packets > 0) counts.sent++;
    }
    rows.push([name, destination, RUNS, counts.had, counts.sent]);
    console.log(rows.at(-1)!.join('  '));
  }
printTable(['what keeps WebRTC away', 'the navigation fails at', 'visits', 'had WebRTC', 'sent UDP'], rows);
udp.close();
server.close();
