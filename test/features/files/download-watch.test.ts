import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { get, type IncomingMessage } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { PassThrough, Readable } from 'node:stream';
import { join } from 'node:path';
import { setImmediate as nextTask, setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import type { WebSocket } from 'ws';
import type { Opening } from '../../../src/drivers/extension.js';
import type { DownloadListener } from '../../../src/features/files/download.js';
import { DownloadWatch } from '../../../src/features/files/download-watch.js';
import { PlaceholderFiles } from '../../../src/features/placeholder-files.js';
import type { Client } from '../../../src/wire/client.js';
import { Wire } from '../../../src/wire/wire.js';
import { ExposedHosts } from '../../../src/features/exposed-network/exposed-hosts.js';
import { RequestBodies } from '../../../src/features/exposed-network/request-bodies.js';
import { ExposedNetwork } from '../../../src/features/exposed-network/exposed-network.js';
import { Fuzzer } from '../../support/cdp-fuzz.js';
import { PlayedBrowser, settle } from '../../support/played-browser.js';
import { Random } from '../../support/random.js';
import { Site } from '../../support/site.js';

async function* broken() {
  yield Buffer.from('beginning');
  throw new Error('The connection was lost.');
}

interface WatchOptions {
  readonly isElsewhere?: boolean;
  readonly listener?: DownloadListener;
}

function watchOn({ url }: PlayedBrowser, wire: Wire, { isElsewhere = false, listener }: WatchOptions) {
  const { shared, own } = wire;
  const over = new AbortController();
  const opening: Opening = {
    openCdp: async (signal) => (await Wire.open(new URL(url), signal, { kind: 'own', shared })).main,
    shared,
    own,
    library: { name: 'mine', sharesFiles: true, savesDownloads: false, connectOptions: {} },
    isElsewhere,
    extended: Promise.resolve(),
    onLost: () => {},
    signal: over.signal,
  };
  const placeholders = new PlaceholderFiles();
  const watch = new DownloadWatch({ ...opening, listener, placeholders });
  return { watch, opening, placeholders, over };
}

describe('downloads', () => {
  /** Larger than all parts of a copy that are under way at the same time. */
  const CONTENT = Buffer.alloc(3_000_001, 'content');
  const GUID = 'd0000000-0000-4000-8000-000000000001';
  const SAVE = 'd0000000-0000-4000-8000-000000000002';
  const BEGUN = { url: 'https://site.example/file', suggestedFilename: 'file' };

  let browser: PlayedBrowser;
  let folder: string;
  /** The files on the browser's machine. */
  let files: Map<string, Buffer>;
  /** What a client of the browser receives. */
  let seen: string[];
  let wire: Wire;
  let socket: Client;
  let client: WebSocket;
  let watch: DownloadWatch;
  let placeholders: PlaceholderFiles;
  /** What the page says about the size of each file, if that is not true. */
  let shownSize: number | undefined;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'artifacts-'));
    browser = await PlayedBrowser.start();
    files = new Map();
    seen = [];
    shownSize = undefined;
    await connect();
    return async () => {
      socket.cut('closed-by-us');
      await browser[Symbol.asyncDispose]();
      await rm(folder, { recursive: true });
    };
  });

  async function connect(isElsewhere = false): Promise<void> {
    ({ wire, socket, client } = await browser.connect());
    ({ watch, placeholders } = watchOn(browser, wire, { isElsewhere }));
    socket.onMessage = (data) => void seen.push(String(data));
    browser.onText = playFiles();
  }

  interface Command {
    id: number;
    method: string;
    params: {
      files?: string[];
      functionDeclaration?: string;
      arguments?: { value: unknown }[];
      downloadPath?: string;
    };
  }

  /** Plays the page with the `<input type=file>`. Returns what answers its commands. */
  function playFiles(): PlayedBrowser['onText'] {
    let input = '';
    let saving = '';
    let added = Buffer.alloc(0);
    return (text, page) => {
      const { id, method, params } = JSON.parse(text) as Command;
      const { functionDeclaration = '' } = params;
      input = params.files?.[0] ?? input;
      saving = params.downloadPath ?? saving;
      const content = files.get(input) ?? Buffer.alloc(0);
      const [first, second] = (params.arguments ?? []).map(({ value }) => value);
      let value: unknown;
      if (functionDeclaration.includes('readAsDataURL'))
        value = content
          .subarray(first as number, shownSize === undefined ? (second as number) : undefined)
          .toString('base64');
      else if (functionDeclaration.includes('download')) {
        files.set(`${saving}/${String(first)}`, added);
        added = Buffer.alloc(0);
        send(page, 'Browser.downloadWillBegin', { ...BEGUN, frameId: 'our-page', guid: SAVE });
        send(page, 'Browser.downloadProgress', { guid: SAVE, state: 'completed' });
      } else if (functionDeclaration.includes('base64')) added = Buffer.from(String(second), 'base64');
      else value = { size: shownSize ?? content.length, lastModified: 1 };
      const ids = { browserContextId: 'our-context', targetId: 'our-page', sessionId: 'our-session' };
      page.send(JSON.stringify({ id, method, result: { ...ids, result: { objectId: 'input', value } } }));
    };
  }

  function send(to: WebSocket, method: string, params: object): void {
    to.send(JSON.stringify({ method, params }));
  }

  /** A library makes the browser save downloads, and one begins. */
  function begin(): void {
    const params = { behavior: 'allowAndName', downloadPath: folder, eventsEnabled: true };
    socket.send(JSON.stringify({ id: 1, method: 'Browser.setDownloadBehavior', params }));
    send(client, 'Browser.downloadWillBegin', { ...BEGUN, frameId: 'page', guid: GUID });
  }

  /** A library makes the browser save downloads, and one is completed. */
  function startDownload(path = `${folder}/${GUID}`, receivedBytes = CONTENT.length): void {
    begin();
    const progress = { guid: GUID, state: 'completed', receivedBytes, filePath: path };
    send(client, 'Browser.downloadProgress', progress);
    send(client, 'Page.later', {});
  }

  /** Returns the state of the download that the library sees. */
  async function download(path?: string, receivedBytes?: number): Promise<string> {
    startDownload(path, receivedBytes);
    const ended = () => seen.find((text) => text.includes('downloadProgress'));
    await expect.poll(ended).toBeDefined();
    return /"state":"(\w+)"/.exec(ended()!)![1]!;
  }

  it('holds back the end of a download until its file is on this machine, and nothing else', async () => {
    files.set(`${folder}/${GUID}`, CONTENT);
    expect(await download()).toBe('completed');
    expect(seen.flatMap((text) => /^\{"method":"([\w.]+)"/.exec(text)?.[1] ?? [])).toEqual([
      'Browser.downloadWillBegin',
      'Page.later',
      'Browser.downloadProgress',
    ]);
    expect(readFileSync(`${folder}/${GUID}`).equals(CONTENT)).toBe(true);
    await watch.emptyFiles();
    expect(files.get(`${folder}/${GUID}`)).toHaveLength(0);
  });

  it.each([
    ['is already here', async () => writeFile(`${folder}/${GUID}`, CONTENT), `FOLDER/${GUID}`],
    ['is where only the caller knows', async () => {}, '/only/there/report.pdf'],
  ])('opens no WebSocket for a file that %s', async (_where, prepare, path) => {
    await prepare();
    expect(await download(path.replace('FOLDER', folder))).toBe('completed');
    expect(browser.dialled).toBe(1);
  });

  it('lets a file of this machine take the place of its placeholder, before the library sees the end', async () => {
    const size = placeholders.add(`${BEGUN.url}#part`, Readable.from([CONTENT, CONTENT]));
    await writeFile(`${folder}/${GUID}`, Buffer.alloc(size));
    expect(await download(undefined, size)).toBe('completed');
    expect(readFileSync(`${folder}/${GUID}`).equals(Buffer.concat([CONTENT, CONTENT]))).toBe(true);
    expect(browser.dialled).toBe(1);
  });

  it.each([
    ['whose content breaks off', () => Readable.from(broken()), `FOLDER/${GUID}`],
    ['whose content was lost before', () => new PassThrough().destroy(), `FOLDER/${GUID}`],
    ['that is saved where only the caller knows', () => Readable.from([CONTENT]), '/only/there/report.pdf'],
  ])('reports a placeholder as canceled %s, and leaves no part of it', async (_why, content, path) => {
    const size = placeholders.add(BEGUN.url, content());
    await writeFile(`${folder}/${GUID}`, Buffer.alloc(size));
    expect(await download(path.replace('FOLDER', folder), size)).toBe('canceled');
    if (path.startsWith('FOLDER')) expect(await readdir(folder)).toEqual([]);
  });

  /** The content of a file without an end, which arrives. */
  async function endless(): Promise<PassThrough> {
    const content = new PassThrough();
    startDownload(undefined, placeholders.add(BEGUN.url, content));
    await expect
      .poll(() => content.listenerCount('data') + content.listenerCount('readable'))
      .toBeGreaterThan(0);
    return content;
  }

  it('ends the content of a download that the library cancels', async () => {
    const content = await endless();
    socket.send(JSON.stringify({ id: 2, method: 'Browser.cancelDownload', params: { guid: GUID } }));
    await expect.poll(() => content.destroyed).toBe(true);
    await expect.poll(() => seen.join()).toContain('"canceled"');
  });

  it('ends a download that the library cancels before its content arrives', async () => {
    await using site = await Site.open((_request, response) => void response.write(Buffer.alloc(1 << 20)));
    const [content] = (await once(get(site.url), 'response')) as [IncomingMessage];
    const size = placeholders.add(BEGUN.url, content);
    begin();
    await expect.poll(() => seen.join()).toContain('downloadWillBegin');
    socket.send(JSON.stringify({ id: 2, method: 'Browser.cancelDownload', params: { guid: GUID } }));
    const progress = { guid: GUID, state: 'completed', receivedBytes: size, filePath: `${folder}/${GUID}` };
    send(client, 'Browser.downloadProgress', progress);
    await expect.poll(() => seen.join()).toContain('"canceled"');
    await expect.poll(() => content.destroyed).toBe(true);
  });

  it('does not wait at the end for the content of a file that has no end', async () => {
    const content = await endless();
    await watch.emptyFiles();
    expect(content.destroyed).toBe(true);
  });

  it('has placeholders only where the files that a context downloads arrive on this machine', () => {
    const set = (behavior: string, browserContextId?: string) => {
      const params = { behavior, downloadPath: folder, browserContextId };
      socket.send(JSON.stringify({ id: 1, method: 'Browser.setDownloadBehavior', params }));
    };
    const arrive = () => [placeholders.arriveFrom('other'), placeholders.arriveFrom('mine')];
    expect(arrive()).toEqual([false, false]);
    set('allowAndName', 'mine');
    expect(arrive()).toEqual([false, true]);
    set('allowAndName');
    set('allow', 'mine');
    expect(arrive()).toEqual([true, false]);
  });

  it('reports a file that cannot be copied as canceled, so that no library reads a missing file', async () => {
    expect(await download()).toBe('canceled');
    expect(existsSync(`${folder}/${GUID}`)).toBe(false);
  });

  it('uses no file of this machine that the browser names, and writes no more bytes than it allows', async () => {
    const canary = join(folder, 'canary');
    await writeFile(canary, 'secret');
    const arrived: string[] = [];
    const failed: string[] = [];
    const listener = {
      maxSize: CONTENT.length,
      begun: () => {},
      progressed: () => {},
      arrived: async (_download: unknown, path: string) => void arrived.push(await readFile(path, 'utf8')),
      failed: (_download: unknown, { message }: Error) => void failed.push(message),
    };
    ({ watch } = watchOn(browser, wire, { listener }));
    // The browser's machine has nothing there.
    await download(canary);
    expect({ arrived, failed }).toEqual({
      arrived: [],
      failed: [expect.stringContaining('browser shows 0')],
    });
    // It says 10 bytes, and sends all of the file.
    const guid = GUID.replace(/1$/, '3');
    files.set(`${folder}/${guid}`, CONTENT);
    shownSize = 10;
    send(client, 'Browser.downloadWillBegin', { ...BEGUN, frameId: 'page', guid });
    const progress = { guid, state: 'completed', receivedBytes: 10, filePath: `${folder}/${guid}` };
    send(client, 'Browser.downloadProgress', progress);
    await expect.poll(() => failed[1]).toContain('it has more than the 10 bytes');
    expect(existsSync(`${folder}/${guid}`)).toBe(false);
    // A file that is here already is measured.
    const large = GUID.replace(/1$/, '4');
    await writeFile(`${folder}/${large}`, Buffer.alloc(CONTENT.length + 1));
    send(client, 'Browser.downloadWillBegin', { ...BEGUN, frameId: 'page', guid: large });
    send(client, 'Browser.downloadProgress', { ...progress, guid: large, filePath: `${folder}/${large}` });
    await expect.poll(() => failed[2]).toContain(`it has ${CONTENT.length + 1} bytes`);
    expect(arrived).toEqual([]);
  });

  it('hides its own page from the library', async () => {
    files.set(`${folder}/${GUID}`, CONTENT);
    await download();
    const before = seen.length;
    const targetInfo = { targetId: 'our-page', type: 'page', url: '', browserContextId: 'our-context' };
    send(client, 'Target.attachedToTarget', { sessionId: 'session-of-the-library', targetInfo });
    send(client, 'Target.detachedFromTarget', { sessionId: 'session-of-the-library' });
    send(client, 'Target.targetDestroyed', { targetId: 'our-page' });
    send(client, 'Target.targetDestroyed', { targetId: 'another-page' });
    await expect.poll(() => seen.length).toBeGreaterThan(before);
    await settle();
    expect(seen.slice(before).join()).toContain('another-page');
    expect(seen.slice(before)).toHaveLength(1);
  });

  it.each([
    { isElsewhere: true, here: '/var/folders/9x/T/artifacts-7', there: '/tmp/artifacts-7' },
    { isElsewhere: true, here: '/tmp/artifacts-7', there: '/tmp/artifacts-7' },
    { isElsewhere: false, here: '/var/folders/9x/T/artifacts-7', there: '/var/folders/9x/T/artifacts-7' },
  ])('lets a browser save in a folder that its machine has: $here', async ({ isElsewhere, here, there }) => {
    await connect(isElsewhere);
    const params = {
      behavior: 'allowAndName',
      browserContextId: 'c',
      downloadPath: here,
      eventsEnabled: true,
    };
    socket.send(JSON.stringify({ id: 7, method: 'Browser.setDownloadBehavior', params, sessionId: 's' }));
    await expect.poll(() => browser.received).toHaveLength(1);
    const sent = { id: 7, method: 'Browser.setDownloadBehavior', params: { ...params, downloadPath: there } };
    expect(JSON.parse(browser.received[0]!)).toEqual({ ...sent, sessionId: 's' });
  });

  it('copies two files of one name to two paths, if two pages upload them at the same time', async () => {
    await connect(true);
    for (const [index, page] of ['one', 'two'].entries()) {
      const path = join(folder, page, 'a.txt');
      await mkdir(join(folder, page));
      await writeFile(path, page);
      const command = {
        id: index,
        method: 'DOM.setFileInputFiles',
        params: { files: [path] },
        sessionId: page,
      };
      socket.send(JSON.stringify(command));
    }
    const commands = () =>
      browser.received
        .map((text) => JSON.parse(text) as Command)
        .filter(({ id, method }) => id < 2 && method === 'DOM.setFileInputFiles');
    await expect.poll(commands).toHaveLength(2);
    const paths = commands().map(({ params }) => params.files![0]);
    expect(paths).toEqual([expect.stringMatching(/^\/tmp\/.*\/a\.txt$/), expect.stringMatching(/\/a\.txt$/)]);
    expect(paths[0]).not.toBe(paths[1]);
  });

  it('leaves nothing of a download that is being copied at the end', async () => {
    files.set(`${folder}/${GUID}`, CONTENT);
    startDownload();
    await expect.poll(() => seen.join()).toContain('Page.later');
    await watch.emptyFiles();
    expect(files.get(`${folder}/${GUID}`)).toHaveLength(0);
  });

  it('lets a form with exposed hosts send the file of this machine, and none that the browser names', async () => {
    await connect(true);
    const bodies = new RequestBodies();
    wire.shared.stack.addFirst(bodies.layer);
    browser.onText = playFiles();
    const [path, other] = [join(folder, 'mine.txt'), join(folder, 'secret.txt')];
    await writeFile(path, 'mine');
    await writeFile(other, 'secret');
    socket.send(JSON.stringify({ id: 1, method: 'DOM.setFileInputFiles', params: { files: [path] } }));
    await expect.poll(() => seen.some((text) => text.includes('"id":1,'))).toBe(true);
    const read = async (name: string) => {
      const head = Buffer.from(`Content-Disposition: form-data; name="f"; filename="${name}"\r\n\r\n`);
      const postDataEntries = [{ bytes: head.toString('base64') }, {}];
      const paused = { request: { hasPostData: true, postDataEntries }, frameId: '' };
      const sources = { targets: { containing: async () => sources }, kept: { sizeWith: () => undefined } };
      const upload = await bodies.read(paused as never, sources as never, new AbortController().signal);
      return String(upload.bytes).slice(head.length);
    };
    expect(await read('mine.txt')).toBe('mine');
    await expect(read('secret.txt')).rejects.toThrow('file');
  });

  it('leaves nothing of an upload that is under way at the end', async () => {
    const path = join(folder, 'a.txt');
    await writeFile(path, 'content');
    socket.send(JSON.stringify({ id: 1, method: 'DOM.setFileInputFiles', params: { files: [path] } }));
    await watch.emptyFiles();
    await expect.poll(() => files.size).toBe(1);
    expect([...files.values()]).toEqual([Buffer.alloc(0)]);
  });
});

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
  let changed = 0;
  const change = fuzzer.change(
    () => 0.5,
    (count) => (changed += count),
  );
  while (changed < MESSAGES) {
    const { wire, socket, client } = await browser.connect();
    const listener = {
      maxSize: 10,
      begun: () => {},
      progressed: () => {},
      failed: () => {},
      arrived: async (_download: unknown, path: string) => void arrived.push(await readFile(path, 'utf8')),
    };
    const { opening, watch, over } = watchOn(browser, wire, { listener });
    const exposed = new ExposedNetwork({
      ...opening,
      hosts: new ExposedHosts('localhost:1'),
      placeholders: new PlaceholderFiles(),
      onRequest: () => {},
    });
    await Promise.race([exposed.useBrowser(undefined), sleep(500)]).catch(() => {});
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
    over.abort('ended');
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
