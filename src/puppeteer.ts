/**
 * Leased browsers with Puppeteer, over CDP or WebDriver BiDi.
 *
 * @module pooled-browser/puppeteer
 */
export { puppeteer, type PuppeteerHandles, type PuppeteerOptions } from './drivers/puppeteer.js';
export type { PuppeteerContextOptions } from './drivers/puppeteer-context.js';
export { mapPooledBrowsers, type PuppeteerMapOptions } from './jobs/puppeteer.js';
export {
  attachBrowser,
  leaseBrowser,
  withPooledBrowser,
  type PuppeteerAttachOptions,
  type PuppeteerLeaseOptions,
  type PuppeteerRunOptions,
  type PuppeteerTypes,
} from './calls/puppeteer.js';
