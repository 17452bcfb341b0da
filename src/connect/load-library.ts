import { MissingLibraryError } from '../errors/index.js';

/** Imports an optional peer; one that is missing is named with the command that installs it. */
export async function loadLibrary<Library>(name: string, load: () => Promise<Library>): Promise<Library> {
  try {
    return await load();
  } catch (cause) {
    throw new MissingLibraryError(name, { cause });
  }
}
