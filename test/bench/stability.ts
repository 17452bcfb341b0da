/**
 * `npm run stability`: runs the tests repeatedly, every second time with busy loops on all cores, and lists each test
 * that failed at least once. RUNS (20) sets how often; SUITE is `unit`, `test` (default) or `more`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { printTable, setting } from './bench.js';

const RUNS = setting('RUNS', 20);
const SUITE = process.env['SUITE'] ?? 'test';

interface Report {
  numPassedTests: number;
  testResults: {
    name: string;
    status: string;
    message: string;
    assertionResults: { status: string; fullName: string; failureMessages: string[] }[];
  }[];
}

interface Failure {
  runs: string[];
  message: string;
}

const failures = new Map<string, Failure>();
const folder = mkdtempSync(join(tmpdir(), 'stability-'));
for (let run = 1; run <= RUNS; run++) {
  const isBusy = run % 2 === 0;
  const began = performance.now();
  const stop = isBusy ? occupyCores() : () => {};
  const { passed, failed } = await runSuite().finally(stop);
  const seconds = ((performance.now() - began) / 1000).toFixed(0);
  const name = `${run}${isBusy ? ' (busy)' : ''}`;
  console.log(`Run ${name} of ${RUNS}: ${passed} passed, ${failed.length} failed, ${seconds} s`);
  for (const [test, message] of failed) {
    console.log(`  ${test}\n${indent(message)}`);
    const before = failures.get(test)?.runs ?? [];
    failures.set(test, { runs: [...before, name], message });
  }
}
rmSync(folder, { recursive: true });
if (failures.size > 0) {
  const rows = [...failures].map(([test, { runs, message }]) => [
    test,
    runs.join(', '),
    message.split('\n', 1)[0]!,
  ]);
  printTable(['test', 'failed in run', 'last error'], rows);
}
process.exit(failures.size > 0 ? 1 : 0);

/** The beginning of an error, with the difference that an assertion found. */
function indent(message: string): string {
  return message
    .split('\n')
    .slice(0, 30)
    .map((line) => `    ${line}`)
    .join('\n');
}

/** Keeps every core busy. @returns A function that ends it. */
function occupyCores(): () => void {
  const loops = Array.from({ length: availableParallelism() }, () =>
    spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }),
  );
  return () => loops.forEach((loop) => loop.kill('SIGKILL'));
}

async function runSuite(): Promise<{ passed: number; failed: [test: string, message: string][] }> {
  const path = join(folder, 'report.json');
  rmSync(path, { force: true });
  const projects = (SUITE === 'test' ? ['unit', 'real'] : [SUITE]).flatMap((name) => ['--project', name]);
  const args = ['vitest', 'run', '--config', 'test/vitest.config.ts', ...projects];
  const reporter = ['--reporter=json', `--outputFile=${path}`];
  const child = spawn('npx', ['--no-install', ...args, ...reporter], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code] = (await once(child, 'close')) as [number | null];
  const report = read(path);
  if (!report) return { passed: 0, failed: [[`the suite, exit code ${code}`, 'There is no report.']] };
  const failed = report.testResults.flatMap(failuresOf);
  if (code !== 0 && failed.length === 0) failed.push([`the suite, exit code ${code}`, 'No test failed.']);
  return { passed: report.numPassedTests, failed };
}

/** A file that breaks outside of its tests (an import, a hook, a leak) counts as one failure. */
function failuresOf({
  name,
  status,
  message,
  assertionResults,
}: Report['testResults'][number]): [string, string][] {
  const tests = assertionResults.filter((test) => test.status === 'failed');
  if (status === 'failed' && tests.length === 0) return [[name, message]];
  return tests.map(({ fullName, failureMessages }) => [`${name}: ${fullName}`, failureMessages.join('\n')]);
}

function read(path: string): Report | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Report;
  } catch {
    return undefined;
  }
}
