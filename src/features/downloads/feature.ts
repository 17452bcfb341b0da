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

export const downloads = declareFeature<Types>()({
  checks: { connect: downloadsChecks },
  load: async () => (await import('./downloads.js')).Downloads,
});
