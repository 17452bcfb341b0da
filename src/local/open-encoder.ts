import type { Encoder } from '../recorder/complete.js';
import { FfmpegEncoder, findFfmpeg } from '../recorder/ffmpeg-encoder.js';
import { VideoWriter } from '../recorder/video-writer.js';
import { launchChromium } from './browser/chromium.js';
import { findBrowser } from './browser/find-browser.js';

/** What writes videos on this machine. */
export interface MachineEncoder extends Encoder {
  readonly name: 'chromium' | 'ffmpeg';
  /** A video is going to be written. Returns a function to call when none is due any longer. */
  readonly expect?: () => () => void;
  readonly close: () => Promise<void>;
}

/** Finds what can write videos on this machine: Chromium, else ffmpeg. Resolves to undefined if there is neither. */
export async function openEncoder(): Promise<MachineEncoder | undefined> {
  const executablePath = await findBrowser().catch(() => undefined);
  if (executablePath !== undefined) {
    const writer = new VideoWriter((signal) =>
      launchChromium({ executablePath, headless: true, args: [] }, signal),
    );
    return {
      name: 'chromium',
      write: (source) => writer.write(source),
      expect: () => writer.expect(),
      close: () => writer.close(),
    };
  }
  const path = findFfmpeg();
  if (path === undefined) return undefined;
  const ffmpeg = new FfmpegEncoder(path);
  return { name: 'ffmpeg', write: (source) => ffmpeg.write(source), close: async () => {} };
}
