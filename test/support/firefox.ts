import { describe } from 'vitest';
import { findBrowser } from '../../src/local.js';
import { SLOW_START } from './program.js';

export const hasFirefox = await findBrowser({ browser: 'firefox' }).then(
  () => true,
  () => false,
);

/** Shows in the report why tests are skipped. */
export const SKIPPED_WITHOUT_FIREFOX = hasFirefox
  ? ''
  : ' (skipped: there is no Firefox; apt-get install firefox-esr)';

/** Tests that need Firefox. Where it is not installed, the report shows why they are skipped. */
export function describeWithFirefox(title: string, tests: () => void): void {
  describe.skipIf(!hasFirefox)(`${title}${SKIPPED_WITHOUT_FIREFOX}`, SLOW_START, () => {
    tests();
  });
}
