import type { CheckingConnector } from '../../drivers/connector.js';
import { InvalidOptionError } from '../../shared/errors.js';
import { checksOf, flag, group, oneOf, optional, text, type Checked } from '../../shared/options.js';

/** Which files show what happened in the browser. */
export interface ArtifactsOptions {
  /**
   * Folder for the files, created if it does not exist. Each run or attempt has its own folder there. Nothing is deleted, and
   * other users of the machine can't read the files.
   */
  folder: string;
  /**
   * `'failure'`: only of failed runs, tasks or tests; `'always'`: of all.
   * @default 'failure'
   */
  on?: 'failure' | 'always' | undefined;
  /**
   * A screenshot of each open page, in full length.
   * @default true
   */
  screenshot?: boolean | undefined;
  /**
   * A trace of Playwright, of the context that the callback receives. It contains everything that the
   * pages sent and received, with cookies and passwords. Playwright only.
   * @default false
   */
  trace?: boolean | undefined;
  /**
   * The latest 1,000 console messages, page errors and failed requests, as JSON lines.
   * @default true
   */
  console?: boolean | undefined;
}

const artifacts = checksOf<ArtifactsOptions>()({
  folder: text(),
  on: optional(oneOf('failure', 'always'), 'failure'),
  screenshot: optional(flag(), true),
  trace: optional(flag(), false),
  console: optional(flag(), true),
});

/** The checked option. */
export type ArtifactsSettings = Checked<typeof artifacts>;

/** The option of a run. */
export interface ArtifactsFeatureOptions {
  /**
   * Files that show a failure: screenshots, traces, console. They are collected before the browser is cleaned up, within 10
   * s. Their paths are in `artifacts` of the run. Needs a connector with `observe`. Default: none.
   */
  artifacts?: ArtifactsOptions | undefined;
}

/** Also for a job and for the fixtures, whose option has another description. */
export const artifactsChecks = checksOf<ArtifactsFeatureOptions>()({ artifacts: optional(group(artifacts)) });

/** The checked options of the feature. */
export interface ArtifactsFeatureSettings extends Checked<typeof artifactsChecks> {}

/** The arguments of the error for a library without traces. */
export const NO_TRACE = [
  'artifacts.trace',
  'Only Playwright records traces: remove artifacts.trace.',
] as const;

/** Refuses what the library can't do. */
export function verifyArtifacts(
  { artifacts }: ArtifactsFeatureSettings,
  connector: Pick<CheckingConnector, 'canTrace'> | undefined,
): void {
  if (artifacts?.trace && !connector?.canTrace) throw new InvalidOptionError(...NO_TRACE);
}

/** Its part of the result. */
export interface ArtifactsResult {
  /** Paths of the files that the option `artifacts` collected. */
  artifacts: readonly string[];
}

/** Its events. */
export interface ArtifactsSteps {
  /**
   * The artifacts of a run, task or test were collected. `paths` are their files, `errors` those of missing ones. Not
   * emitted after a success with `on: 'failure'`.
   */
  'artifacts-collected': { sessionId: string; paths: readonly string[]; errors: readonly Error[] };
}
