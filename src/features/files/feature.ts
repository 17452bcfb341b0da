import { lazy } from '../../shared/lazy.js';
import { declareFeature } from '../declaration.js';
import type { StandIns } from '../stand-ins.js';
import {
  downloadsChecks,
  type DownloadsFeatureOptions,
  type DownloadsFeatureSettings,
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
  none: () => ({ downloads: [] }),
});

const load = lazy(() => import('./downloads.js'));

/** @internal */
export const create = async ({ downloads }: DownloadsFeatureSettings, standIns: StandIns) =>
  new (await load()).Downloads(downloads, standIns);
