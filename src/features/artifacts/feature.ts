import type { EndOptions } from '../../lease/options.js';
import { lazy } from '../../shared/lazy.js';
import { declareFeature } from '../declaration.js';
import {
  artifactsChecks,
  verifyArtifacts,
  type ArtifactsFeatureOptions,
  type ArtifactsFeatureSettings,
  type ArtifactsResult,
  type ArtifactsSteps,
} from './options.js';

export const declared = declareFeature<{
  run: ArtifactsFeatureOptions;
  result: ArtifactsResult;
  steps: ArtifactsSteps;
}>()({
  checks: { run: artifactsChecks },
  none: () => ({ artifacts: [] }),
  verify: verifyArtifacts,
});

const load = lazy(() => import('./artifacts.js'));

/** @internal */
export const create = async ({ artifacts, signal }: ArtifactsFeatureSettings & Pick<EndOptions, 'signal'>) =>
  artifacts && new (await load()).Artifacts(artifacts, signal);
