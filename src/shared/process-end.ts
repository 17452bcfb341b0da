import { raceTimeout } from './abort.js';
import { endTasks, type EndTask } from './process-state.js';

/** Milliseconds by which end tasks may delay a signal. */
export const END_TIMEOUT = 2000;

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Registers a task; the returned function removes it. Listeners exist only while there is a task. */
export function beforeProcessEnds(task: EndTask): () => void {
  const { tasks } = endTasks;
  if (tasks.size === 0) listen();
  tasks.add(task);
  return () => {
    if (tasks.delete(task) && tasks.size === 0) unlisten();
  };
}

/** True for an origin that this process itself serves. */
export function isServedHere(origin: string): boolean {
  return [...endTasks.tasks].some(({ servedOrigin }) => servedOrigin === origin);
}

function listen(): void {
  process.on('exit', runAtExit);
  process.on('beforeExit', onEmptyLoop);
  // Must run first: `listenerCount` does not include a `once` listener that ran before this one.
  for (const signal of SIGNALS) process.prependListener(signal, onSignal);
}

function unlisten(): void {
  process.off('exit', runAtExit);
  process.off('beforeExit', onEmptyLoop);
  for (const signal of SIGNALS) process.off(signal, onSignal);
}

function runAtExit(): void {
  for (const task of endTasks.tasks) {
    try {
      task.atExit?.();
    } catch {
      // The other tasks run, and the process keeps its exit code or signal.
    }
  }
  endTasks.tasks.clear();
  unlisten();
}

function onEmptyLoop(): void {
  void runBeforeEnd();
}

/**
 * Without another listener, the signal ends the process as usual, after the tasks. With another listener, that listener
 * decides; if it exits, `runAtExit` runs.
 */
function onSignal(signal: NodeJS.Signals): void {
  if (process.listenerCount(signal) - countSignalExit() > 1) return;
  const end = () => {
    runAtExit();
    process.kill(process.pid, signal);
  };
  // A second signal ends the process immediately.
  if (endTasks.isEnding) return end();
  endTasks.isEnding = true;
  void runBeforeEnd().then(end);
}

async function runBeforeEnd(): Promise<void> {
  const work = [...endTasks.tasks].map(async (task) => task.beforeEnd?.());
  await raceTimeout(END_TIMEOUT, () => Promise.allSettled(work)).catch(() => {});
}

/**
 * The package signal-exit (used by execa and many others) also waits until only its own listeners are left. If this
 * module counted those as a decision of the user, both would wait for each other, and Ctrl-C would have no effect.
 */
function countSignalExit(): number {
  const emitter: unknown = Reflect.get(globalThis, Symbol.for('signal-exit emitter'));
  const count: unknown = typeof emitter === 'object' && emitter !== null ? Reflect.get(emitter, 'count') : 0;
  return typeof count === 'number' ? count : 0;
}
