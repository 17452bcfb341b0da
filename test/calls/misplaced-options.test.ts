import { expect, it } from 'vitest';
import { leaseChecks, readLeaseOptions } from '../../src/calls/options.js';

it.each([
  ['viewport', 'contextOptions: { viewport }'],
  ['storageState', 'contextOptions: { storageState }'],
  ['proxyServer', 'contextOptions: { proxyServer }'],
  ['headers', 'connectOptions: { headers }'],
  ['slowMo', 'connectOptions: { slowMo }'],
  ['defaultViewport', 'connectOptions: { defaultViewport }'],
  ['token', 'new BrowserPool(idOrName, { token })'],
  ['headless', 'The pool starts its browsers'],
  // Otherwise a similar name is suggested.
  ['acquireTimeuot', 'Did you mean acquireTimeout?'],
])('the error for the option %s says where it belongs', (name, advice) => {
  const read = () => readLeaseOptions(leaseChecks, { [name]: 1 }, { caller: 'leaseBrowser' });
  expect(read).toThrow(`leaseBrowser has no option ${name}. `);
  expect(read).toThrow(advice);
});
