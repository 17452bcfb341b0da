import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs';
import { rename, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { environment } from '../shared/environment.js';
import type { Encoder, VideoSource } from './complete.js';
import { sizeOfJpeg } from './masks/jpeg-mask.js';
import { layOutFrames, readFrames } from './frames.js';
import type { Video } from './video-file.js';

/** Milliseconds for each second of a recording, and in any case, after which ffmpeg is killed. */
const PER_SECOND = 2_000;
const AT_LEAST = 60_000;

/** Returns the path of ffmpeg if PATH has one. */
export function findFfmpeg(): string | undefined {
  const name = process.platform === 'win32' ? 'ffmpeg.exe' : 'ffmpeg';
  return environment
    .programFolders()
    .map((path) => join(path, name))
    .find(isExecutable);
}

/** Writes videos with ffmpeg. */
export class FfmpegEncoder implements Encoder {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  async write({ frames, file, length }: VideoSource): Promise<Video | undefined> {
    const folder = mkdtempSync(join(dirname(frames), 'encoding-'));
    try {
      const list = ['ffconcat version 1.0'];
      let first: Buffer | undefined;
      let last: Buffer | undefined;
      let count = 0;
      for await (const { jpeg, duration } of layOutFrames(readFrames(frames), length)) {
        first ??= jpeg;
        if (jpeg !== last) await writeFile(join(folder, `${++count}.jpg`), jpeg, { mode: 0o600 });
        last = jpeg;
        list.push(`file ${count}.jpg`, `duration ${duration / 1000}`);
      }
      if (!first) return undefined;
      const { width, height } = sizeOfJpeg(first);
      const size = { width: even(width), height: even(height) };
      await writeFile(join(folder, 'list.ffconcat'), list.join('\n'), { mode: 0o600 });
      await this.#run(folder, size, Math.max(AT_LEAST, (PER_SECOND * length) / 1000));
      const video = join(folder, VIDEO);
      const bytes = (await stat(video)).size;
      await file.discard();
      await rename(video, file.path);
      return { path: file.path, type: 'video/webm', size: bytes, duration: length, ...size };
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  async #run(folder: string, size: { width: number; height: number }, timeout: number): Promise<void> {
    const scale = `scale=${size.width}:${size.height}`;
    const codec = [
      '-c:v',
      'libvpx-vp9',
      '-deadline',
      'realtime',
      '-cpu-used',
      '8',
      '-crf',
      '36',
      '-b:v',
      '0',
    ];
    const how = ['-vf', scale, '-fps_mode', 'vfr', '-pix_fmt', 'yuv420p', ...codec, '-g', '50'];
    const args = ['-nostdin', '-v', 'error', '-f', 'concat', '-i', 'list.ffconcat', ...how, VIDEO];
    const child = spawn(this.#path, args, {
      cwd: folder,
      env: environment.forHelperProgram(),
      stdio: ['ignore', 'ignore', 'pipe'],
      timeout,
    });
    let message = '';
    child.stderr.on('data', (data: Buffer) => (message = `${message}${String(data)}`.slice(0, MOST_MESSAGE)));
    const [code] = (await once(child, 'close')) as [number | null];
    if (code !== 0) throw new Error(`ffmpeg failed (${code ?? 'killed'}): ${message.trim()}`);
  }
}

const VIDEO = 'video.webm';

/** Characters of ffmpeg's own message. */
const MOST_MESSAGE = 500;

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** The encoder needs even numbers. */
function even(size: number): number {
  return Math.max(2, size - (size % 2));
}
