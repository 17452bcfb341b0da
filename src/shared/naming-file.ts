import { isError } from './globals.js';
/**
 * Does work on a file. An error of the file system that names no file gets its path: those of a write, such as that of a full
 * disk, have none.
 */
export async function namingFile<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (isError(error) && 'syscall' in error && !('path' in error)) {
      error.message += ` '${path}'`;
      Object.assign(error, { path });
    }
    throw error;
  }
}
