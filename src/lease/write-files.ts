import { inTime } from './in-time.js';
import type { OpenConnection } from '../drivers/connection.js';
import { CleanupError } from '../shared/lease-errors.js';
import type { LeaseContext } from './context.js';

/** Time for writing the files, in ms: an aborted call waits for no more than that. */
const WRITE_TIMEOUT = 1000;

/** Each connection writes its files once. */
const writing = new WeakMap<OpenConnection<unknown>, Promise<void>>();

/**
 * Lets the library write what it writes only when it closes a context, such as a HAR, while its connection is still open. Never
 * rejects: files that can't be written are reported.
 */
export async function writeFiles(
  lease: Pick<LeaseContext, 'sessionId' | 'addError'>,
  connection: OpenConnection<unknown> | undefined,
): Promise<void> {
  if (!connection) return;
  if (!writing.has(connection)) writing.set(connection, write(lease, connection));
  await writing.get(connection);
}

async function write(
  { sessionId, addError }: Pick<LeaseContext, 'sessionId' | 'addError'>,
  connection: OpenConnection<unknown>,
): Promise<void> {
  const { files } = connection;
  if (!files || files.unwritten().length === 0) return;
  const cause = await inTime(connection, WRITE_TIMEOUT, () => files.write()).catch((error: unknown) => error);
  const paths = files.unwritten();
  if (paths.length === 0) return;
  const message =
    `Files were not written, or not completely: ${paths.join(', ')}. They are written when their context is closed. ` +
    "Await context.close() in the callback. The browser's own context is never closed: use context: 'new'.";
  addError(new CleanupError(message, { sessionId, cause }));
}
