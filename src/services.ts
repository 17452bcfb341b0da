/**
 * The services that lease browsers, and the interface of your own one.
 *
 * @module pooled-browser/services
 */
export { kernel, type BrowserSession } from './service/services/kernel.js';
export { cdp, type CdpSession } from './service/services/cdp.js';
export {
  path,
  socketUrl,
  textAt,
  valueAt,
  type BrowserService,
  type Grant,
  type LeaseRequest,
  type OwnerTest,
  type Replay,
  type ReplayRequest,
  type ServiceAddress,
  type ServiceAuth,
  type ServiceRequest,
  type SessionSearch,
} from './service/browser-service.js';
