import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeProcessEnds } from '../shared/process-end.js';

/** A folder that only this user can read. It is removed at the end of the process at the latest. */
export interface TemporaryFolder {
  readonly path: string;
  remove(): Promise<void>;
}

/** Creates a folder for the files of one connection, such as downloads. */
export async function createTemporaryFolder(): Promise<TemporaryFolder> {
  const path = await mkdtemp(join(tmpdir(), 'pooled-browser-artifacts-'));
  const unregister = beforeProcessEnds({ atExit: () => rmSync(path, { recursive: true, force: true }) });
  return {
    path,
    remove: async () => {
      await rm(path, { recursive: true }).catch(() => {});
      unregister();
    },
  };
}
