import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const LIMIT = 20_000;

/** A browser that was downloaded may lack libraries of the system. @throws with what it says itself. */
export async function checkStarts(executablePath: string, signal: AbortSignal): Promise<void> {
  // There it opens a window instead.
  if (process.platform === 'win32') return;
  try {
    await promisify(execFile)(executablePath, ['--version'], { timeout: LIMIT, signal });
  } catch (cause) {
    const said = (cause as { stderr?: string }).stderr?.trim();
    throw new Error(`${executablePath} is installed and does not start: ${said || 'it said nothing'}`, {
      cause,
    });
  }
}
