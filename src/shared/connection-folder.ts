import { rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { beforeProcessEnds } from './process-end.js';
import { makeTemporaryFolder } from './temporary-folder.js';

/** A folder that only this user can read. */
interface TemporaryFolder {
  readonly path: string;
  readonly removed: Promise<void>;
}

/** Creates a folder that lasts until the end of a connection, or of the process. */
export async function createTemporaryFolder({
  ended,
}: {
  readonly ended: Promise<unknown>;
}): Promise<TemporaryFolder> {
  const path = makeTemporaryFolder('artifacts');
  const unregister = beforeProcessEnds({ atExit: () => rmSync(path, { recursive: true, force: true }) });
  const removed = ended.then(async () => {
    await rm(path, { recursive: true }).catch(() => {});
    unregister();
  });
  return { path, removed };
}
