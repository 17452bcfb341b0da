import { declareFeature } from '../declaration.js';
import {
  downloadsChecks,
  type DownloadsFeatureOptions,
  type DownloadsResult,
  type DownloadsSteps,
} from './options.js';

interface Types {
  connect: DownloadsFeatureOptions;
  result: DownloadsResult;
  steps: DownloadsSteps;
}

export const declared = declareFeature<Types>()({
  checks: { connect: downloadsChecks },
});

/** @internal */
export const load = async () => (await import('./downloads.js')).Downloads;
