import { isHeadlessShell } from '../../src/local/browser/find-browser.js';

/** Called by a test file that runs on a whole Chromium, as users do, instead of the headless shell of most tests. */
export function useWholeBrowser(): void {
  if (isHeadlessShell(process.env['CHROME_PATH'] ?? '')) delete process.env['CHROME_PATH'];
}
