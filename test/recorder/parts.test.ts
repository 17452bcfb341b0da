import { sourceOver } from '../../src/wire/cdp-source.js';
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { CdpMessage, CdpReceiver } from '../../src/wire/cdp-source.js';
import {
  type Frame,
  FrameFile,
  layOutFrames,
  readFrames,
  type TimedFrame,
} from '../../src/recorder/frames.js';
import { FORMAT } from '../../src/recorder/journal.js';
import { RecorderWorld } from '../../src/recorder/masks/mask-script.js';
import { PageEvents } from '../../src/recorder/page-events.js';
import { BrowserPictures } from '../../src/recorder/pictures.js';
import { RecordedPages } from '../../src/recorder/recorded-pages.js';
import { encodeHere, Recorder } from '../../src/recorder/recorder.js';
import { RecordingStore, type StoredRecording } from '../../src/recorder/recording-store.js';
import { Timeline } from '../../src/recorder/timeline.js';
import { type FilePart, VideoFile } from '../../src/recorder/video-file.js';
import { thisProcess, type ProcessId } from '../../src/shared/process-id.js';
import { useFakeClock } from '../support/fake-clock.js';

const folder = mkdtempSync(join(tmpdir(), 'recorder-files-'));
afterAll(() => rmSync(folder, { recursive: true }));

const FRAMES = [0, 100.5, 201].map(frame);

it.each([
  [0, FRAMES],
  [1, FRAMES.slice(0, 2)],
  [3, FRAMES.slice(0, 2)],
  [14, FRAMES.slice(0, 2)],
])('reads back the frames of a file that lacks %i bytes of its last frame', async (missing, frames) => {
  const path = join(folder, `cut-${missing}`);
  const file = new FrameFile(path, failed);
  for (const frame of FRAMES) file.append(frame);
  await file.end();
  truncateSync(path, file.bytes - missing);
  expect(await framesOf(path)).toEqual(frames);
});

it.runIf(process.platform === 'linux')('reports a full disk once, and ignores further frames', async () => {
  const failures: Error[] = [];
  const file = new FrameFile('/dev/full', (error) => failures.push(error));
  for (const frame of FRAMES) file.append(frame);
  await expect.poll(() => failures).toMatchObject([{ code: 'ENOSPC' }]);
  for (const frame of FRAMES) file.append(frame);
  await file.end();
  expect(failures).toHaveLength(1);
});

it('drops frames when the disk is slow, so that memory use stays limited', async () => {
  const path = join(folder, 'slow');
  const file = new FrameFile(path, failed);
  const jpeg = Buffer.alloc(1024 * 1024);
  for (let at = 0; at < 100; at++) file.append({ at, jpeg });
  expect(file.bytes).toBeLessThan(20 * 1024 * 1024);
  await file.end();
  expect((await framesOf(path)).length).toBeGreaterThan(10);
});

it('shows the first frame from the start of the video, and the last frame until its end', async () => {
  expect(await layOut([300, 1_000], 2_500)).toEqual([
    { at: 0, duration: 1_000, jpeg: frame(300).jpeg, isKey: true },
    { at: 1_000, duration: 1_500, jpeg: frame(1_000).jpeg, isKey: false },
  ]);
  expect(await layOut([], 1_000)).toEqual([]);
});

it('repeats a frame every 2 s, so that players can seek in a video of a still page', async () => {
  const frames = await layOut([0], 5_000);
  expect(frames.map(({ at, duration }) => [at, duration])).toEqual([
    [0, 2_000],
    [2_000, 2_000],
    [4_000, 1_000],
  ]);
});

it.each([
  ['5 s while the page changes', Array.from({ length: 120 }, (_, index) => index * 100), 12_000, 5_000],
  ['5 min while it does not', [0], 900_000, 300_000],
])('has a key frame every %s', async (_period, times, length, interval) => {
  const keys = (await layOut(times, length)).filter(({ isKey }) => isKey);
  expect(keys.map(({ at }) => at)).toEqual([0, interval, 2 * interval]);
});

function frame(at: number): Frame {
  return { at, jpeg: Buffer.from(String(at)) };
}

function failed(error: Error): void {
  throw error;
}

function framesOf(path: string): Promise<Frame[]> {
  return Readable.from(readFrames(path)).toArray() as Promise<Frame[]>;
}

function layOut(times: readonly number[], length: number): Promise<TimedFrame[]> {
  const frames = layOutFrames(Readable.from(times.map(frame)), length);
  return Readable.from(frames).toArray() as Promise<TimedFrame[]>;
}

const path = join(folder, 'video.webm');

it('reserves more space than requested, and releases it after a repeated attempt', async () => {
  const file = new VideoFile(path, failed);
  const expected = 3 * 1024 * 1024;
  file.reserve(expected);
  await expect.poll(() => file.reserved).toBeGreaterThan(expected);
  expect(statSync(`${path}.part`).size).toBe(file.reserved);
  const crash = async (stream: WritableStream<FilePart>) => {
    await write('a longer text', stream);
    throw new Error('crashed');
  };
  await expect(file.fill(crash)).rejects.toThrow('crashed');
  expect(await file.fill((stream) => write('video', stream))).toBe(5);
  expect(readFileSync(path, 'utf8')).toBe('video');
  expect(existsSync(`${path}.part`)).toBe(false);
});

it('leaves no file when it is discarded', async () => {
  const file = new VideoFile(join(folder, 'none.webm'), failed);
  expect(existsSync(join(folder, 'none.webm.part'))).toBe(true);
  await file.discard();
  expect(existsSync(join(folder, 'none.webm.part'))).toBe(false);
});

it.runIf(process.platform === 'linux')(
  'reports a full disk once, and leaves no file on a disk that is full from the start',
  async () => {
    const failures: Error[] = [];
    const file = new VideoFile(path, (error) => failures.push(error));
    rmSync(`${path}.part`);
    symlinkSync('/dev/full', `${path}.part`);
    for (const bytes of [1, 2]) file.reserve(bytes * 1024 * 1024);
    await expect.poll(() => failures).toMatchObject([{ code: 'ENOSPC' }]);
    file.reserve(3 * 1024 * 1024);
    expect(() => new VideoFile(path, failed)).toThrow('ENOSPC');
    expect(existsSync(`${path}.part`)).toBe(false);
    await file.discard();
    expect(failures).toHaveLength(1);
  },
);

/** Writes a text out of order, as the WebM writer does. */
async function write(text: string, stream: WritableStream<FilePart>): Promise<void> {
  const data = new Uint8Array(Buffer.from(text));
  const half = Math.floor(data.length / 2);
  const writer = stream.getWriter();
  await writer.write({ data: data.slice(half), position: half });
  await writer.write({ data: data.slice(0, half), position: 0 });
  await writer.close();
}

describe('the recordings of a folder', () => {
  it('removes finished recordings to free space, and none that runs or whose video is being written', () => {
    const store = new RecordingStore({ folder: undefined, maxBytes: 100, maxTotalBytes: 100, keep: 10 });
    const files = { poster: '', video: '' };
    const running = { bytes: 80, frameBytes: 0, files } as StoredRecording;
    const finished = { bytes: 20, frameBytes: 0, finishedAt: new Date(), files } as StoredRecording;
    for (const recording of [running, finished]) store.add(recording);
    expect(store.hasCapacity(running, 20)).toBe(true);
    expect(store.list).toEqual([running]);
    expect(store.hasCapacity(running, 21)).toBe(false);
    expect(store.list).toEqual([running]);
  });

  it('keeps recordings in a folder that git ignores, and removes the oldest of earlier processes first', async () => {
    const parent = mkdtempSync(join(tmpdir(), 'recordings-'));
    onTestFinished(() => rmSync(parent, { recursive: true }));
    const folder = join(parent, 'kept');
    const limits = { folder, maxBytes: 2_000, maxTotalBytes: 2_000, keep: 2 };
    expect(existsSync(folder)).toBe(false);
    const store = new RecordingStore(limits);
    const recording = recordingAt('2026-02-03T04:05:06.789Z', 'cart.spec');
    const { saved, frames } = store.createFiles(recording);
    const { folder: first, journal, facts } = saved!;
    expect(basename(first)).toBe('2026-02-03T04-05-06Z-cart.spec-abcdef01');
    // After a SIGKILL, they can still be put together.
    expect(dirname(frames)).toBe(first);
    expect(readFileSync(join(folder, '.gitignore'), 'utf8')).toBe('*\n');
    writeJournal(journal, thisProcess());
    writeFileSync(facts, '{}'.padEnd(1_000));
    await store.close();

    const elsewhere = mkdtempSync(join(tmpdir(), 'elsewhere-'));
    onTestFinished(() => rmSync(elsewhere, { recursive: true }));
    writeJournal(join(elsewhere, 'recording.jsonl'), thisProcess());
    writeFileSync(join(elsewhere, 'replay.json'), '{}');
    // None of these is a recording of ours that is over.
    const others = ['2025-01-01T00-00-00Z-00000000', '2025-01-02T00-00-00Z-00000000', 'notes'];
    for (const name of others) mkdirSync(join(folder, name));
    writeJournal(join(folder, others[0]!, 'recording.jsonl'), thisProcess());
    writeFileSync(join(folder, '2026-01-01.txt'), '');
    symlinkSync(elsewhere, join(folder, '2025-01-03T00-00-00Z-00000000'));
    const next = new RecordingStore(limits);
    const later = Object.assign(recordingAt('2026-02-04T00:00:00.000Z', 'cart.spec'), {
      bytes: 10,
      frameBytes: 0,
    });
    const files = next.createFiles(later);
    next.add(Object.assign(later, { files, finishedAt: new Date() }));
    next.prune();
    expect(next.hasCapacity(later, 10)).toBe(true);
    expect(existsSync(facts)).toBe(true);
    expect(next.hasCapacity(later, 1_000)).toBe(true);
    const left = [...others, '.gitignore', '2026-01-01.txt', '2025-01-03T00-00-00Z-00000000'];
    expect(readdirSync(folder).toSorted()).toEqual([...left, basename(files.saved!.folder)].toSorted());
    expect(readdirSync(elsewhere)).toHaveLength(2);
    await next.close();
  });

  it('removes what is too old, and what a killed process left', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'recordings-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const names = ['2025-01-01T00-00-00Z-00000000', '2025-01-02T00-00-00Z-00000001'];
    const ended = spawnSync(process.execPath, ['--eval', '0']).pid;
    for (const [index, name] of names.entries()) {
      mkdirSync(join(folder, name));
      const process = { ...thisProcess(), started: undefined, pid: index === 0 ? ended : thisProcess().pid };
      writeJournal(join(folder, name, 'recording.jsonl'), process);
    }
    const day = 86_400_000;
    const limits = { folder, maxBytes: 1e6, maxTotalBytes: 1e6, keep: 100, maxAge: day };
    const store = new RecordingStore(limits);
    const recording = recordingAt(new Date().toISOString(), 'new');
    const { saved } = store.createFiles(recording);
    store.prune();
    expect(readdirSync(folder).toSorted()).toEqual([names[1], basename(saved!.folder)]);
    await store.close();
  });

  function writeJournal(path: string, process: ProcessId): void {
    const session = { sessionId: 's', leaseId: 'l', pool: 'p' };
    const head = { replayId: 'r', startedAt: '', framesPerSecond: 10, isSingle: false, session, process };
    writeFileSync(path, `${JSON.stringify({ format: FORMAT, ...head })}\n`);
  }

  function recordingAt(date: string, leaseName: string): StoredRecording {
    const session = { leaseName };
    return { replayId: 'abcdef0123456789', startedAt: new Date(date), session } as StoredRecording;
  }
});

describe('the reports of a page', () => {
  /** Plays a browser whose page sends these events to a recording. Returns the entries of the timeline. */
  async function record(...events: { method: string; params: object }[]): Promise<Timeline['entries']> {
    const timeline = new Timeline(undefined, () => 0);
    const world = new RecorderWorld([]);
    const pageEvents = new PageEvents(timeline, world);
    let receiver!: CdpReceiver;
    const pipe = playBrowser((given) => (receiver = given));
    const pictures = { watch: () => ({ stop: () => {}, hint: () => {}, take: async () => {} }) };
    const pages = await RecordedPages.open(
      { source: sourceOver(pipe), pictures: pictures as never },
      {
        interval: 1000,
        names: pageEvents.names,
        onPicture: () => {},
        onShown: () => {},
        onPage: (page) => pageEvents.enable(page),
        onFrame: (frame) => pageEvents.enableScripts(frame),
        world,
        onEvent: (event, at) => pageEvents.add(event, at),
      },
    );
    const targetInfo = { targetId: 't', type: 'page', url: 'about:blank' };
    receiver.onMessage({ method: 'Target.attachedToTarget', params: { sessionId: 's', targetInfo } });
    for (const event of events) receiver.onMessage({ ...event, sessionId: 's' });
    pages.close();
    return timeline.entries.slice(1);
  }

  const report = (payload: string) => ({
    method: 'Runtime.bindingCalled',
    params: { name: '', payload, executionContextId: 1 },
  });

  it('ignores reports that are not its own: a client can open the world of the recorder', async () => {
    const strange = ['', '{', 'null', '[]', '"x"', '{"kind":"click"}'].map(report);
    expect(await record(...strange, report('{"kind":"click","text":"a"}'))).toEqual([
      { at: 0, kind: 'click', text: 'a' },
    ]);
  });

  const failure = (requestId: string, url: string) => [
    {
      method: 'Network.requestWillBeSent',
      params: { requestId, request: { url, method: 'GET', headers: {} } },
    },
    { method: 'Network.loadingFailed', params: { type: 'Fetch', requestId, errorText: 'net::ERR_FAILED' } },
  ];

  it('hides the values of secret parameters, also of many, in time in proportion to their number', async () => {
    const shown = async (query: string) =>
      (await record(...failure('1', `http://a.test/?${query}`)))[0]?.text;
    expect(await shown('x=1&my-sig=a&my-sig=b&y=2')).toBe(
      'http://a.test/?x=1&my-sig=hidden&my-sig=hidden&y=2',
    );
    const time = async (parameters: number) => {
      const query = Array.from({ length: parameters }, (_, at) => `my-sig${at}=s`).join('&');
      const began = performance.now();
      expect(await shown(query)).toContain('my-sig0=');
      return performance.now() - began;
    };
    await time(1000);
    const one = await time(1000);
    const times = [await time(8000), await time(8000), await time(8000)];
    // In proportion: 8 times; before, 64 times and more.
    expect(Math.min(...times)).toBeLessThan(30 * Math.max(one, 5));
  });
});

describe('the pictures of a page', () => {
  it('have the time of the click that they follow, as the timeline has it', async () => {
    let recorder!: CdpReceiver;
    let taken = 0;
    const pipe = playBrowser(
      (receiver) => (recorder ??= receiver),
      () => ({ data: Buffer.from(`picture ${++taken}`).toString('base64') }),
    );
    const store = new Recorder({
      limits: { folder: undefined, maxBytes: 1e8, maxTotalBytes: 1e8, keep: 10 },
      encoder: encodeHere(() => Promise.reject(new Error('no video'))),
    });
    onTestFinished(() => store.close());
    const session = { sessionId: 's', leaseId: 'l', pool: 'p' };
    const recording = store.record(
      { source: sourceOver(pipe), pictures: new BrowserPictures(sourceOver(pipe)) },
      session,
      { framerate: 1 },
      { signal: new AbortController().signal },
    );
    await expect.poll(() => recorder).toBeDefined();
    const targetInfo = { targetId: 't', type: 'page', url: 'about:blank' };
    recorder.onMessage({ method: 'Target.attachedToTarget', params: { sessionId: 'p', targetInfo } });
    const { files, facts } = await recording;
    const clicks = 3;
    for (let click = 0; click < clicks; click++) {
      const before = taken;
      const params = { name: '', payload: '{"kind":"click","text":"a"}', executionContextId: 1 };
      recorder.onMessage({ method: 'Runtime.bindingCalled', params, sessionId: 'p' });
      await expect.poll(() => taken).toBeGreaterThan(before);
    }
    const frames = async () => (await framesOf(files.frames)).map(({ at }) => at);
    await expect.poll(async () => (await frames()).length).toBe(taken);
    const clicked = facts.timeline.filter(({ kind }) => kind === 'click').map(({ at }) => at);
    expect(clicked).toHaveLength(clicks);
    expect(await frames()).toEqual(expect.arrayContaining(clicked));
  });

  it('that do not come in time are followed by a pause: a busy Chromium works at one of them', async () => {
    useFakeClock();
    let taken = 0;
    const pipe = playBrowser(
      () => {},
      () => void taken++,
    );
    const watch = new BrowserPictures(sourceOver(pipe)).watch('t', { interval: 10, onPicture: () => {} });
    // Chromium gets a second for a picture, and twice as long for what else it does.
    await vi.advanceTimersByTimeAsync(2_900);
    expect(taken).toBe(1);
    await vi.advanceTimersByTimeAsync(200);
    expect(taken).toBe(2);
    watch.stop();
  });
});

/** What the recorder's script answers in a document that has nothing to hide. */
const NOTHING_HIDDEN = JSON.stringify({
  path: '',
  view: [800, 600, 800, 600, 0, 0, 1],
  documents: [{ isTooMany: false, elements: [], frames: [], placeless: 0 }],
});

/** A browser that answers each command of its clients, and captures of its pages with a picture, if there is one. */
function playBrowser(onClient: (receiver: CdpReceiver) => void, capture: () => object | void = () => ({})) {
  return {
    connect: async (receiver: CdpReceiver) => {
      onClient(receiver);
      return {
        send: ({ id, method, params }: CdpMessage) => {
          const { expression } = params as { expression?: string };
          const value = expression?.endsWith('end()') ? NOTHING_HIDDEN : true;
          const answer = { sessionId: 'p', executionContextId: 1, result: { value } };
          const result = method === 'Page.captureScreenshot' ? capture() : answer;
          if (result) receiver.onMessage({ id, result });
        },
        close: () => {},
      };
    },
  };
}
