import { join } from 'node:path';
import { environment } from '../../shared/environment.js';
import { isExecutable } from '../browser/is-executable.js';

/** Path of Xvfb, the X server that needs no screen. */
export function findXvfb(): string | undefined {
  return environment
    .programFolders()
    .map((folder) => join(folder, 'Xvfb'))
    .find(isExecutable);
}

/** Whether browser windows would have nowhere to open, unless a screen is made for them. */
export function lacksDisplay(): boolean {
  return process.platform === 'linux' && environment.display() === undefined;
}
