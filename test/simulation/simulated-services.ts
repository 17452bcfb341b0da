import type { BrowserPool, BrowserService } from '../../src/index.js';
import type { World } from './world.js';

/**
 * The services that the library uses in simulated worlds: the given API; the same one, which leases no session again; one
 * that refuses at once instead of waiting; and a browser without a service.
 */
export type Shape = 'kernel' | 'kernel without owner' | 'own' | 'cdp';

/** The pool of a simulated world. */
export type SimulatedPool = BrowserPool<Readonly<Record<string, unknown>>>;

/** Returns the service of a world. */
export function serviceOf(shape: Shape, { library }: World, address: string): BrowserService {
  const { kernel, cdp, path, textAt } = library.services;
  if (shape === 'kernel') return kernel;
  if (shape === 'cdp') return cdp(`${address.replace(/^http/, 'ws')}/browser`);
  if (shape === 'kernel without owner') {
    const { owner: _owner, ...without } = kernel;
    return without;
  }
  return {
    name: 'own',
    auth: { header: 'x-api-key' },
    secretParameters: ['jwt'],
    idField: 'session_id',
    waits: 'never',
    acquire: ({ id, tags }) => ({ method: 'POST', path: '/sessions', body: { request: id, tags } }),
    grant: (json) => ({
      id: textAt(json, 'data', 'session_id'),
      session: (json as { data: object }).data,
      cdpUrl: textAt(json, 'data', 'url'),
    }),
    release: (id) => ({ method: 'DELETE', path: path`/sessions/${id}` }),
    find: ({ id }) => ({ method: 'GET', path: path`/sessions?request=${id}`, list: ['data'] }),
  };
}
