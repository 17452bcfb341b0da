import type { Completed } from './complete.js';

/** To the process that completes recordings, each in a line. The values are the paths of their folders. */
export type RecordingMessage =
  | { readonly started: string }
  /** Its files are written. */
  | { readonly ended: string }
  /** Somebody else has completed or removed it. */
  | { readonly dropped: string };

/** The messages from that process, each in a line. */
export type RecordingAnswer =
  /** What writes the videos. Missing if this machine has nothing that can. */
  | { readonly encoder?: 'chromium' | 'ffmpeg' | undefined }
  | { readonly folder: string; readonly completed: Completion };

/** What became of a recording, without its pictures. */
export type Completion = Omit<Completed, 'pictures'> & { readonly hasPictures: boolean };

export function completionOf({ video, pictures, failure }: Completed): Completion {
  return { video, failure, hasPictures: pictures !== undefined };
}
