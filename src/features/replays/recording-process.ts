import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { complete, type Completed } from '../../recorder/complete.js';
import type { RecordingAnswer, RecordingMessage } from '../../recorder/helper-messages.js';
import type { RecordingEncoder } from '../../recorder/recorder.js';
import { clock } from '../../shared/clock.js';
import { isRecord, jsonOf } from '../../shared/json.js';
import { packageFile } from '../../shared/package-file.js';
import { helperCommand, spawnHelper, unrefStreams } from '../../shared/runtime.js';

/** What the other process says of itself: `none` if this machine has nothing that writes videos, or if the process can't start. */
type MachineEncoder = 'chromium' | 'ffmpeg' | 'none';

/** Milliseconds without a recording after which the process ends. */
const IDLE = 10_000;

/**
 * Lets another process write the videos: so the callers' process is not busy with that, and need not wait for it. There is one at a
 * time, which ends when no recording is left and when this process ends.
 */
export class RecordingProcess implements RecordingEncoder {
  /** The folders of recordings that are not complete, with what waits for them: undefined if the other process has ended. */
  readonly #running = new Map<string, (completed: Completed | undefined) => void>();
  #child: ChildProcess | undefined;
  #idle: NodeJS.Timeout | undefined;
  #encoder: Promise<MachineEncoder> = Promise.resolve('none');

  /** What writes the videos, once the process has started. */
  get encoder(): Promise<MachineEncoder> {
    return this.#encoder;
  }

  readonly expect: RecordingEncoder['expect'] = ({ files }) => {
    const folder = files.saved!.folder;
    if (!this.#running.has(folder)) {
      this.#running.set(folder, () => {});
      this.#send({ started: folder });
    }
    return () => {
      if (!this.#running.delete(folder)) return;
      this.#send({ dropped: folder });
      this.#endIfIdle();
    };
  };

  readonly complete: RecordingEncoder['complete'] = async (ended, encoder) => {
    const { folder } = ended.files.saved!;
    const isElsewhere = this.#running.has(folder) && (await this.#encoder) !== 'none';
    if (encoder || !isElsewhere || !this.#child) return complete(ended, encoder);
    const done = new Promise<Completed | undefined>((resolve) => this.#running.set(folder, resolve));
    this.#send({ ended: folder });
    return (await done) ?? complete(ended, undefined);
  };

  readonly close = async (): Promise<void> => {};

  #send(message: RecordingMessage): void {
    clock.clearTimeout(this.#idle);
    this.#child ??= this.#start();
    this.#child?.stdin?.write(`${JSON.stringify(message)}\n`);
  }

  #start(): ChildProcess | undefined {
    const child = startHelper();
    if (!child) return undefined;
    let onEncoder!: (encoder: MachineEncoder) => void;
    this.#encoder = new Promise((resolve) => (onEncoder = resolve));
    const lines = createInterface({ input: child.stdout! });
    lines.on('line', (line) => {
      const answer = jsonOf(line) as RecordingAnswer;
      if (!isRecord(answer)) return;
      if ('folder' in answer) this.#onCompleted(answer.folder, answer.completed);
      else onEncoder(answer.encoder ?? 'none');
    });
    lines.once('close', () => {
      onEncoder('none');
      // One that was idle may end after the next one has started.
      if (this.#child === child) this.#onEnded();
    });
    child.unref();
    unrefStreams(child.stdin, child.stdout);
    return child;
  }

  #onEnded(): void {
    this.#child = undefined;
    for (const resolve of this.#running.values()) resolve(undefined);
    this.#running.clear();
  }

  #onCompleted(folder: string, completed: Completed): void {
    this.#running.get(folder)?.(completed);
    this.#running.delete(folder);
    this.#endIfIdle();
  }

  #endIfIdle(): void {
    if (this.#running.size > 0) return;
    clock.clearTimeout(this.#idle);
    this.#idle = clock.setTimeout(() => {
      this.#child?.stdin?.end();
      this.#child = undefined;
    }, IDLE);
    this.#idle.unref();
  }
}

/** Undefined where no process can start: then nothing writes videos, but the leased browser. */
function startHelper(): ChildProcess | undefined {
  const file = packageFile('dist/recording-process.js');
  if (file === undefined) return undefined;
  try {
    return spawnHelper(helperCommand({ file }));
  } catch {
    return undefined;
  }
}
