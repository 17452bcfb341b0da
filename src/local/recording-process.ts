/**
 * The process that completes the recordings of another process, one after another: it writes their videos, where this machine
 * can, and their pages. It reads lines of JSON (see `RecordingMessage`). At the end of its input it completes the recordings
 * that are left, also those of a process that was killed.
 */
import { constants, setPriority } from 'node:os';
import { createInterface } from 'node:readline';
import { completeFolder } from '../recorder/complete.js';
import { completionOf, type RecordingAnswer, type RecordingMessage } from '../recorder/helper-messages.js';
import { jsonOf } from '../shared/json.js';
import { openEncoder } from './open-encoder.js';

try {
  // Its encoder inherits this: no video delays what the leased browsers do.
  setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
} catch {
  // The runtime, or the sandbox of the process, does not allow it.
}
const encoder = await openEncoder();
/** The folders of recordings that are not complete, with the functions that say that no video is due any longer. */
const running = new Map<string, () => void>();
let last: Promise<unknown> = Promise.resolve();
// The process that reads the answers may have ended.
process.stdout.on('error', () => {});
answer({ encoder: encoder?.name });
for await (const line of createInterface({ input: process.stdin })) {
  const message = jsonOf(line) as RecordingMessage | undefined;
  if (!message) continue;
  if ('started' in message) running.set(message.started, encoder?.expect?.() ?? (() => {}));
  else if ('ended' in message) void finish(message.ended);
  else end(message.dropped);
}
for (const folder of running.keys()) void finish(folder);
await last;
await encoder?.close();

function finish(folder: string): Promise<unknown> {
  last = last.then(async () => {
    if (!running.has(folder)) return;
    const completed = await completeFolder(folder, encoder).catch((error: Error) => ({
      failure: error.message,
    }));
    end(folder);
    answer({ folder, completed: completionOf(completed) });
  });
  return last;
}

function end(folder: string): void {
  running.get(folder)?.();
  running.delete(folder);
}

function answer(message: RecordingAnswer): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}
