/**
 * Checks for an adapter of your own service.
 *
 * @module pooled-browser/services/conformance
 */
export { LEASE_ID, serviceFaults, type ServiceSample } from './pool/conformance.js';
export type { ErrorSample } from './pool/conformance-answers.js';
