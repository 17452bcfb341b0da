/**
 * What must be done before this process is gone, however it ends. The listeners stand only while there is something
 * to do, and change neither the exit code nor the signal nor what the user's own listeners decide.
 */
export interface EndTask {
  /** Called once the process exits: nothing but synchronous work is done any more. */
  atExit(): void;
  /** Called on a signal, and when the event loop has run empty: there is still some time, at most `END_TIMEOUT` ms. */
  beforeEnd?(): Promise<void>;
}

/** Milliseconds that a signal is held up. */
export const END_TIMEOUT = 2000;

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const tasks = new Set<EndTask>();
let ending = false;

/** Sees to the task when this process ends, unless the returned function was called before. */
export function beforeProcessEnds(task: EndTask): () => void {
  if (tasks.size === 0) listen();
  tasks.add(task);
  return () => {
    if (tasks.delete(task) && tasks.size === 0) unlisten();
  };
}

function listen(): void {
  process.on('exit', runAtExit);
  process.on('beforeExit', onEmptyLoop);
  // First in line: a listener of `once` that ran before is no longer counted.
  for (const signal of SIGNALS) process.prependListener(signal, onSignal);
}

function unlisten(): void {
  process.off('exit', runAtExit);
  process.off('beforeExit', onEmptyLoop);
  for (const signal of SIGNALS) process.off(signal, onSignal);
}

function runAtExit(): void {
  for (const task of tasks) task.atExit();
  tasks.clear();
  unlisten();
}

function onEmptyLoop(): void {
  void runBeforeEnd();
}

/**
 * A signal with no other listener ends the process, as if this one were not there, once the tasks are done. With
 * another listener it is that listener's decision; should it exit, `runAtExit` runs then.
 */
function onSignal(signal: NodeJS.Signals): void {
  if (process.listenerCount(signal) - countSignalExit() > 1) return;
  const end = () => {
    runAtExit();
    process.kill(process.pid, signal);
  };
  // The second signal waits for nothing.
  if (ending) return end();
  ending = true;
  void runBeforeEnd().then(end);
}

async function runBeforeEnd(): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeUp = new Promise((resolve) => {
    timer = setTimeout(resolve, END_TIMEOUT);
  });
  await Promise.race([Promise.allSettled([...tasks].map(async (task) => task.beforeEnd?.())), timeUp]);
  clearTimeout(timer);
}

/**
 * The package signal-exit (below execa and many others) also waits until its listeners are the only ones left:
 * counting them as somebody's decision would leave the two waiting for each other, and Ctrl-C without effect.
 */
function countSignalExit(): number {
  const emitter: unknown = Reflect.get(globalThis, Symbol.for('signal-exit emitter'));
  const count: unknown = typeof emitter === 'object' && emitter !== null ? Reflect.get(emitter, 'count') : 0;
  return typeof count === 'number' ? count : 0;
}

/** Origins that this very process serves: once it no longer runs its event loop, nobody answers there. */
export const ownOrigins = new Set<string>();
