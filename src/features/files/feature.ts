import { lazy } from '../../shared/lazy.js';
import { declareFeature } from '../declaration.js';
import type { PlaceholderFiles } from '../placeholder-files.js';
import {
  downloadsChecks,
  type DownloadsFeatureOptions,
  type DownloadsFeatureSettings,
  type DownloadsResult,
  type DownloadsSteps,
} from './options.js';

export const declared = declareFeature<{
  connect: DownloadsFeatureOptions;
  result: DownloadsResult;
  steps: DownloadsSteps;
}>()({
  checks: { connect: downloadsChecks },
  none: () => ({ downloads: [] }),
});

const load = lazy(() => import('./downloads.js'));

/** @internal */
export const create = async ({ downloads }: DownloadsFeatureSettings, placeholders: PlaceholderFiles) =>
  new (await load()).Downloads(downloads, placeholders);
