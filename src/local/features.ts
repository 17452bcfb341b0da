import { Dashboard } from './dashboard/dashboard.js';
import type { FeatureContext, LocalFeature } from './feature.js';
import { LiveViews } from './live/live.js';

/** Starts the features of the local pool. Each is a folder and its place here: without both, the rest works as before. */
export function startFeatures(context: FeatureContext) {
  const dashboard = new Dashboard(context);
  const features: readonly LocalFeature[] = [dashboard, new LiveViews(context)];
  return { features, dashboardUrl: dashboard.url };
}
