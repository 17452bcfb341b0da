/**
 * What the fixtures do with parts of a runner that it does not document (`src/fixtures/*-internals.ts`) is in its report: tests
 * whose wait for a browser does not count, facts of a failed test, screenshots and artifacts.
 */
import { basename, dirname } from 'node:path';

interface VitestReport {
  readonly testResults: readonly {
    /** Why the file could not run. */
    readonly message?: string;
    readonly assertionResults: readonly {
      readonly title: string;
      readonly status: string;
      readonly meta?: {
        readonly pooledBrowser?: { readonly sessionId?: string; readonly replays?: readonly string[] };
      };
    }[];
  }[];
}

/** Returns what is wrong in the report of Vitest. */
export function faultsOfVitest(text: string, version: string): string | undefined {
  const { testResults } = JSON.parse(text) as VitestReport;
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
  const messages = testResults.map(({ message }) => message).filter(Boolean);
  const of = (title: string) => tests.find((test) => test.title === title);
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const hasFreeWait = major > 4 || (major === 4 && minor >= 1);
  const meta = of('fails')?.meta?.pooledBrowser;
  return faultsOf([
    ['messages', messages.join('\n'), ''],
    ['passes', of('passes')?.status, 'passed'],
    ['fails', of('fails')?.status, 'failed'],
    [
      'the wait for a browser',
      of('waits without spending its time')?.status,
      hasFreeWait ? 'passed' : 'failed',
    ],
    ['the session of the failed test', typeof meta?.sessionId, 'string'],
    ['its replays', meta?.replays?.length, 1],
    ['the session of other tests', typeof of('passes')?.meta?.pooledBrowser, 'undefined'],
  ]);
}

interface PlaywrightReport {
  readonly suites: readonly { readonly specs: readonly Spec[] }[];
}

interface Spec {
  readonly title: string;
  readonly tests: readonly {
    readonly annotations: readonly { readonly type: string }[];
    readonly results: readonly {
      readonly status: string;
      /** Playwright Test before 1.56 lists them only here. */
      readonly annotations?: readonly { readonly type: string }[];
      readonly attachments: readonly { readonly name: string; readonly path?: string }[];
    }[];
  }[];
}

/**
 * Returns what is wrong in the report of Playwright Test.
 *
 * @param folder The folder of the artifacts, in which they stay.
 */
export function faultsOfPlaywright(text: string, folder: string): string | undefined {
  const { suites } = JSON.parse(text) as PlaywrightReport;
  const specs = suites.flatMap((suite) => suite.specs);
  const of = (title: string) => specs.find((spec) => spec.title === title)?.tests[0];
  const { results = [] } = of('fails') ?? {};
  const files = results.flatMap(({ attachments }) => attachments);
  const isInPlace = ({ path = '' }) => dirname(dirname(path)) === folder;
  return faultsOf([
    // Its timeout is shorter than the wait for a browser, that of the next one than its hand-off.
    ['passes', of('passes')?.results[0]?.status, 'passed'],
    ['the hand-off', of('asks a person')?.results[0]?.status, 'passed'],
    ['fails', results[0]?.status, 'failed'],
    ['its annotations', annotationsOf(of('fails')).join(), 'session,lease,live-view,replay'],
    // The blank page, which the browser always has, is hidden.
    ['its screenshots', files.filter((file) => file.name === 'screenshot' && !isInPlace(file)).length, 1],
    // The runner takes the screenshot, and the page logs nothing.
    [
      'its artifacts',
      files
        .filter(isInPlace)
        .map(({ path = '' }) => basename(path))
        .join(),
      '',
    ],
    ['annotations of other tests', annotationsOf(of('passes')).length, 0],
  ]);
}

function annotationsOf(test: Spec['tests'][number] | undefined): string[] {
  const all = [test?.annotations, ...(test?.results ?? []).map(({ annotations }) => annotations)];
  return [...new Set(all.flatMap((some = []) => some.map(({ type }) => type)))];
}

type Check = readonly [what: string, found: unknown, expected: unknown];

function faultsOf(checks: readonly Check[]): string | undefined {
  const wrong = checks.filter(([, found, expected]) => found !== expected);
  const lines = wrong.map(
    ([what, found, expected]) => `${what}: ${String(found)} instead of ${String(expected)}`,
  );
  return lines.length > 0 ? lines.join('; ') : undefined;
}
