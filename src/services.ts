/**
 * The services that lease browsers, and the interface of your own one.
 *
 * @module pooled-browser/services
 */
export { kernel, type KernelCreate, type KernelOptions, type KernelService } from './services/kernel.js';
export type { BrowserSession } from './services/kernel-api.js';
export { webdriver, type WebDriverOptions, type WebDriverSession } from './services/webdriver.js';
export { cdp, type CdpSession } from './services/cdp.js';
export {
  browserless,
  type BrowserlessOptions,
  type BrowserlessSession,
  type BrowserlessSessionOptions,
} from './services/browserless.js';
export {
  browserbase,
  type BrowserbaseBrowserSettings,
  type BrowserbaseOptions,
  type BrowserbaseSession,
} from './services/browserbase.js';
export { steel, type SteelOptions, type SteelSession } from './services/steel.js';
export { hyperbrowser, type HyperbrowserOptions, type HyperbrowserSession } from './services/hyperbrowser.js';
export { cloudflare, type CloudflareOptions, type CloudflareSession } from './services/cloudflare.js';
export { anchor, type AnchorOptions, type AnchorSession, type AnchorSwitch } from './services/anchor.js';
export { browserUse, type BrowserUseOptions, type BrowserUseSession } from './services/browser-use.js';
export {
  LEASE_TAG,
  leaseInTags,
  leaseTags,
  MARK_TAG,
  socketUrl,
  type BrowserService,
  type FieldsOf,
  type Grant,
  type LeaseFault,
  type LeaseRequest,
  type ListedSession,
  type OwnerTest,
  type Replay,
  type ReplayAccess,
  type ReplayRequest,
  type ServiceAddress,
  type ServiceAuth,
  type ServiceRequest,
  type SessionFields,
  type SessionOptions,
  type SessionSearch,
  type VideoSearch,
} from './services/browser-service.js';
export { listAt, objectAt, path, textAt, urlAt, valueAt } from './services/service-json.js';
