import { declareFeature } from '../declaration.js';
import {
  artifactsChecks,
  verifyArtifacts,
  type ArtifactsFeatureOptions,
  type ArtifactsResult,
  type ArtifactsSteps,
} from './options.js';

interface Types {
  run: ArtifactsFeatureOptions;
  result: ArtifactsResult;
  steps: ArtifactsSteps;
}

export const declared = declareFeature<Types>()({
  checks: { run: artifactsChecks },
  verify: verifyArtifacts,
});

/** @internal */
export const load = async () => (await import('./artifacts.js')).Artifacts;
