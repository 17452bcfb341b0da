/** The adapter of a service that rents browsers: `POST /rentals`, `GET /rentals?reference=…`, `DELETE /rentals/{number}`. */
import { listAt, objectAt, path, type BrowserService } from 'pooled-browser/services';

/** What the callback receives as `session`. */
export interface Rental {
  readonly number: string;
  readonly socket: string;
  readonly reference: string;
}

export const rentals: BrowserService<Rental> = {
  name: 'rentals',
  auth: { header: 'x-rental-key' },
  // Parameters of the service's URLs whose values are secrets.
  secretParameters: ['jwt'],
  // The field with the id, also in a response that breaks off.
  idField: 'number',
  // The service refuses with 429 if it has no browser; the library asks again.
  waits: 'never',
  // The service stores our id, so that the library can find the lease of a lost response.
  acquire: ({ id }) => ({ method: 'POST', path: '/rentals', body: { reference: id } }),
  grant: (json) => {
    const session = objectAt<Rental>(json, ['rental'], ['number', 'socket']);
    return { id: session.number, session, cdpUrl: session.socket };
  },
  release: (number) => ({ method: 'DELETE', path: path`/rentals/${number}` }),
  find: ({ id }) => ({
    method: 'GET',
    path: path`/rentals?reference=${id}`,
    list: ['rentals'],
    at: ['reference'],
  }),
  // For `pooled-browser leases` and `doctor`.
  sessions: {
    list: (page) => (page === 0 ? { method: 'GET', path: '/rentals' } : undefined),
    read: (json) =>
      listAt(json, 'rentals').map((rental) => {
        const { number, reference } = objectAt<Rental>(rental, [], ['number', 'reference']);
        return { id: number, lease: reference };
      }),
  },
};
