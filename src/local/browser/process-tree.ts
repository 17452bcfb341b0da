import { spawnSync } from 'node:child_process';

/** Kills a process and all that it started. Synchronous, so that it also works while this process exits. */
export function killProcessTree(pid: number): void {
  if (process.platform === 'win32') {
    spawnSync('taskkill', ['/pid', String(pid), '/T', '/F'], { stdio: 'ignore', windowsHide: true });
    return;
  }
  try {
    // The negative id means its process group: the child was started as the leader of its own.
    process.kill(-pid, 'SIGKILL');
  } catch {
    // Gone already.
  }
}
