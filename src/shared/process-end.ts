import { raceTimeout } from './abort.js';
import { endTasks, type EndTask } from './process-state.js';
import { onFatalError, prependSignalListener } from './runtime.js';

/** Milliseconds by which end tasks may delay a signal. */
export const END_TIMEOUT = 2000;

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** A shell reports a program that a signal ended with this code, plus the number of the signal. */
const SIGNAL_CODE = 128;

/** Registers a task; the returned function removes it. Listeners exist only while there is a task. */
export function beforeProcessEnds(task: EndTask): () => void {
  const { tasks } = endTasks;
  if (tasks.size === 0) {
    unlisten();
    listen();
  }
  tasks.add(task);
  return () => {
    tasks.delete(task);
    // The first process of a container ignores signals without a listener, and would be killed later, with its next lease.
    if (tasks.size === 0 && process.pid !== 1) unlisten();
  };
}

/** True for an origin that this process itself serves. */
export function isServedHere(origin: string): boolean {
  return [...endTasks.tasks].some(({ servedOrigin }) => servedOrigin === origin);
}

let stopFatal = () => {};

function listen(): void {
  process.on('exit', runAtExit);
  stopFatal = onFatalError(runAtExit);
  process.on('beforeExit', onEmptyLoop);
  // Must run first: `listenerCount` does not include a `once` listener that ran before this one.
  for (const signal of SIGNALS) prependSignalListener(signal, onSignal);
}

function unlisten(): void {
  process.off('exit', runAtExit);
  stopFatal();
  process.off('beforeExit', onEmptyLoop);
  for (const signal of SIGNALS) process.off(signal, onSignal);
}

function runAtExit(): void {
  // The tasks block this thread. Without listeners, another signal ends the process at once.
  unlisten();
  for (const task of endTasks.tasks) {
    try {
      task.atExit?.();
    } catch {
      // The other tasks run, and the process keeps its exit code or signal.
    }
  }
  endTasks.tasks.clear();
}

function onEmptyLoop(): void {
  void runBeforeEnd();
}

/**
 * Without another listener, the signal ends the process as usual, after the tasks. With another listener, that listener
 * decides; if it exits, `runAtExit` runs.
 */
function onSignal(signal: NodeJS.Signals): void {
  if (hasOtherListeners(signal)) return;
  // A second signal ends the process immediately.
  if (endTasks.ending) return endBy(signal);
  endTasks.ending = runBeforeEnd().then(() => {
    if (!hasOtherListeners(signal)) return endBy(signal);
    // The program has added a listener meanwhile, which decides then.
    process.kill(process.pid, signal);
    endTasks.ending = undefined;
  });
}

function endBy(signal: NodeJS.Signals): void {
  runAtExit();
  // Another copy of this library still releases its browsers, and ends the process then.
  if (listenersOf(signal).some((listener) => listener[COPY]?.isEnding())) return;
  process.kill(process.pid, signal);
  if (process.pid !== 1) return;
  const { constants } = process.getBuiltinModule('node:os');
  // oxlint-disable-next-line unicorn/no-process-exit -- the first process of a container gets no signal that it does not handle
  process.exit(SIGNAL_CODE + constants.signals[signal]);
}

/** What a listener of any copy of this library shows to the other copies. */
const COPY: unique symbol = Symbol.for('pooled-browser.signal-listener');

type Listener = NodeJS.SignalsListener & { readonly [COPY]?: { isEnding(): boolean } };

Object.assign(onSignal, { [COPY]: { isEnding: () => endTasks.ending !== undefined } });

function listenersOf(signal: NodeJS.Signals): readonly Listener[] {
  return process.listeners(signal);
}

/** Whether the program has a listener. Two copies of this library in a process must not wait for each other. */
function hasOtherListeners(signal: NodeJS.Signals): boolean {
  const others = listenersOf(signal).filter((listener) => listener[COPY] === undefined);
  return others.length - countSignalExit() > 0;
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
