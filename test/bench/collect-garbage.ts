import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

/** What is on the heap after this is held by somebody. */
export const collectGarbage = runInNewContext('gc') as () => void;
