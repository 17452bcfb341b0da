import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RecordingAnswer, RecordingMessage } from '../../src/recorder/helper-messages.js';
import { FrameFile } from '../../src/recorder/frames.js';
import { Journal } from '../../src/recorder/journal.js';
import { RecordingStore } from '../../src/recorder/recording-store.js';
import type { TimelineEntry } from '../../src/recorder/timeline.js';
import { thisProcess } from '../../src/shared/process-id.js';
import { faults, usePerson } from '../local/pages/support.js';
import { COLOURS, expectColour, shownAt, useMedia } from './page/support.js';

const MINUTE = 60_000;
const SHORT = 10 * MINUTE;
const LONG = 120 * MINUTE;
/** Milliseconds between two frames. */
const INTERVAL = 2_000;
const ENTRIES = 10_000;
/** Decoders ignore bytes after the picture. The padding makes it as large as a full page. */
const PADDING = Buffer.alloc(96 * 1024);

const made = useMedia();
const person = usePerson();
const folder = mkdtempSync(join(tmpdir(), 'long-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** A recording whose process has ended: its frames, with a colour in each quarter, and its journal. Returns its folder. */
async function leave(name: string, length: number): Promise<string> {
  const store = new RecordingStore({ folder, maxBytes: 1e9, maxTotalBytes: 2e9, keep: 10 });
  const session = { sessionId: name, leaseId: name, leaseName: name, pool: 'scrapers' };
  const startedAt = new Date();
  const recording = { replayId: `${name}-0123456789abcdef`, startedAt, session };
  const { frames, saved } = store.createFiles(recording);
  const failed = (error: Error) => {
    throw error;
  };
  const file = new FrameFile(frames, failed);
  const pictures = made.media.pictures.map((picture) => Buffer.concat([picture, PADDING]));
  for (let at = 0; at < length; at += INTERVAL) {
    const frame = { at, jpeg: pictures[Math.floor((at * pictures.length) / length)]! };
    const before = file.bytes;
    // A slow disk drops frames.
    for (file.append(frame); file.bytes === before; file.append(frame)) await sleep(5);
  }
  await file.end();
  const head = { ...recording, startedAt: startedAt.toISOString(), framesPerSecond: 10, isSingle: false };
  const journal = new Journal(saved!.journal, { ...head, process: thisProcess() }, failed);
  for (let index = 0; index < ENTRIES; index++) {
    const at = (index * length) / ENTRIES;
    journal.add({ at, kind: KINDS[index % KINDS.length]!, text: `event-${index} of the shop` });
    // Its writer drops lines that wait for a slow disk.
    if (index % 1_000 === 0) await sleep(5);
  }
  await journal.end({ length, result: 'succeeded' });
  return saved!.folder;
}
const KINDS: readonly TimelineEntry['kind'][] = ['call', 'navigation', 'console', 'click'];

/** Completes a recording in the process that does so for leases. Returns the most memory that this process had, in bytes, on Linux. */
async function complete(own: string): Promise<number> {
  const child = spawn(process.execPath, ['dist/recording-process.js'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const send = (message: RecordingMessage) => child.stdin.write(`${JSON.stringify(message)}\n`);
  send({ started: own });
  send({ ended: own });
  let most = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    const answer = JSON.parse(line) as RecordingAnswer;
    if (!('folder' in answer)) continue;
    expect(answer.completed).toMatchObject({ hasPictures: false, video: { type: 'video/webm' } });
    if (isLinux) most = memoryOf(child.pid!);
    child.stdin.end();
  }
  if (child.exitCode === null) await once(child, 'exit');
  return most;
}

const isLinux = process.platform === 'linux';

function memoryOf(pid: number): number {
  return 1024 * Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]);
}

let long: string;
let frames: number;
let most: number;
beforeAll(async () => {
  long = await leave('long', LONG);
  frames = statSync(join(long, 'frames')).size;
  most = await complete(long);
}, 600_000);

it.runIf(isLinux)(
  'a recording of two hours is completed with the memory of one of ten minutes',
  { timeout: 600_000 },
  async () => {
    const before = await complete(await leave('short', SHORT));
    // What is compared is that it does not hold the frames.
    expect(frames).toBeGreaterThan(2 * before);
    expect(most / before).toBeLessThan(2);
  },
);

it('its page opens at a moment near its end, shows the picture of that moment, and finds one of 10,000 events', async () => {
  const page = await person.open(`${pathToFileURL(join(long, 'index.html')).href}#t=7140`);
  await expect.poll(() => shownAt(page)).toBe(7140);
  await expectColour(page, COLOURS[3]);
  const current = page.locator('#entries [aria-current="true"]');
  expect(await current.textContent()).toContain('event-9916 ');
  await page.getByLabel('Position in the video').fill(String(60 * MINUTE - 1_000));
  await expectColour(page, COLOURS[1]);
  await page.getByRole('searchbox', { name: 'Search the events' }).fill('event-9990');
  await expect.poll(() => page.locator('#count').textContent()).toBe('1 of 10000');
  expect(faults(page)).toEqual([]);
});
