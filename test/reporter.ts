import { writeFileSync } from 'node:fs';
import type { Reporter, SerializedError, TestCase, TestModule } from 'vitest/node';

/**
 * Prints after each failed test how to repeat the test. With the variable REPORT, also writes a file for `.ci/run`: the
 * numbers of passed and of skipped tests, then a line for each failure: the command that repeats it, the byte 1f, and what failed, in which
 * a carriage return stands for a new line.
 */
export class FailureReporter implements Reporter {
  onTestCaseResult(test: TestCase): void {
    if (test.result().state !== 'failed') return;
    console.error(`FAILED: ${test.fullName}\n  Repeat it: ${commandOf(test.module, test)}`);
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    const path = process.env['REPORT'];
    if (path === undefined) return;
    const passed = modules.filter((module) => fileErrors(module).length === 0).flatMap(passedTests);
    const skipped = modules.flatMap((module) => [...module.children.allTests('skipped')]);
    // An error outside of all files has no command.
    const failures = [...modules.flatMap(failuresOf), ...errors.map(({ message }) => ['', message])];
    const lines = failures.map(([command, text]) => `${command}\x1f${text!.replaceAll('\n', '\r')}`);
    writeFileSync(path, [`${passed.length} ${skipped.length}`, ...lines, ''].join('\n'));
  }
}

type Failure = [command: string, text: string];

/** A file that failed outside of its tests (an import, a hook, a leak) is one failure; its tests count when it is repeated. */
function failuresOf(module: TestModule): Failure[] {
  const failed = [...module.children.allTests('failed')];
  const errors = fileErrors(module);
  if (errors.length > 0) {
    const all = [...errors, ...failed.flatMap((test) => test.result().errors ?? [])];
    return [[commandOf(module), describe(module.relativeModuleId, all)]];
  }
  return failed.map((test) => {
    const what = `${module.relativeModuleId}: ${test.fullName}`;
    return [commandOf(module, test), describe(what, test.result().errors ?? [])];
  });
}

function fileErrors(module: TestModule): readonly SerializedError[] {
  return [module, ...module.children.allSuites()].flatMap((suite) => suite.errors());
}

function passedTests(module: TestModule): TestCase[] {
  return [...module.children.allTests('passed')];
}

function describe(what: string, errors: readonly SerializedError[]): string {
  return `${what}\n${errors.map(({ message }) => message).join('\n')}`.slice(0, 1000);
}

function commandOf(module: TestModule, test?: TestCase): string {
  const command = `npx vitest run --config test/vitest.config.ts ${module.relativeModuleId}`;
  return test ? `${command} -t ${quote(patternOf(test))}` : command;
}

/** Matches the names of the test's suites and its own. */
function patternOf(test: TestCase): string {
  const names = [test.name];
  for (let { parent } = test; parent.type === 'suite'; { parent } = parent) names.unshift(parent.name);
  return `^${names.join(' ').replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)}$`;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
