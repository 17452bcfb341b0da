export { puppeteer, type PuppeteerHandles, type PuppeteerOptions } from './connect/puppeteer.js';
export {
  leaseBrowser,
  withPooledBrowser,
  type PuppeteerLeaseOptions,
  type PuppeteerRunOptions,
} from './run/puppeteer.js';
