import { pathToFileURL } from 'node:url';
import { packageFile } from '../shared/package-file.js';

/**
 * The program that releases browsers in another process, as text: an application that is bundled into one file has no other
 * file beside it. `npm run build` replaces this module; the source needs the built program.
 */
const url = pathToFileURL(packageFile('dist/release-process.js')!).href;
export const RELEASE_PROGRAM = `await import(${JSON.stringify(url)});`;
