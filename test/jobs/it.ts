import { it as base, onTestFinished } from 'vitest';
import { MapBench } from './support.js';

/** Each test that takes `bench` has one of its own. */
export const it = base.extend('bench', async ({ task: _task }, { onCleanup }) => {
  const bench = await MapBench.start();
  onCleanup(() => bench[Symbol.asyncDispose]());
  return bench;
});

/** Collects the warnings of this process until the end of the test. */
export function warningsOfTest(): Error[] {
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => warnings.push(warning);
  process.on('warning', onWarning);
  onTestFinished(() => void process.off('warning', onWarning));
  return warnings;
}
