import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeProcessEnds } from '../shared/process-end.js';

/** A folder for what Playwright keeps while it is connected, such as downloads. */
export interface ArtifactsFolder {
  readonly path: string;
  remove(): Promise<void>;
}

/**
 * Playwright would make a folder of its own, and remove it some time after the connection has ended: a process that ends
 * before that leaves it behind.
 */
export async function makeArtifactsFolder(): Promise<ArtifactsFolder> {
  const path = await mkdtemp(join(tmpdir(), 'pooled-browser-artifacts-'));
  const unguard = beforeProcessEnds({ atExit: () => rmSync(path, { recursive: true, force: true }) });
  return {
    path,
    remove: async () => {
      await rm(path, { recursive: true }).catch(() => {});
      unguard();
    },
  };
}
