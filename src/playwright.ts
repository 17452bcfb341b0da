export { playwright, type PlaywrightHandles, type PlaywrightOptions } from './connect/playwright.js';
export {
  leaseBrowser,
  withPooledBrowser,
  type PlaywrightLeaseOptions,
  type PlaywrightRunOptions,
} from './run/playwright.js';
