/**
 * Leased browsers with Playwright.
 *
 * @module pooled-browser/playwright
 */
export { playwright, type PlaywrightHandles, type PlaywrightOptions } from './drivers/playwright.js';
export { mapPooledBrowsers, type PlaywrightMapOptions } from './jobs/playwright.js';
export {
  attachBrowser,
  leaseBrowser,
  withPooledBrowser,
  type PlaywrightAttachOptions,
  type PlaywrightLeaseOptions,
  type PlaywrightRunOptions,
  type PlaywrightTypes,
} from './calls/playwright.js';
