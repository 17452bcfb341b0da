/**
 * Installs what tests, examples and benchmarks need, if this machine has no browser: Chromium, Xvfb for its windows, and
 * Debian's headless shell, with which the tests take 40 % less time. Needs the build.
 */
import { spawnSync } from 'node:child_process';
import { findBrowser } from 'pooled-browser/local';

const hasBrowser = await findBrowser().then(
  () => true,
  () => false,
);
if (!hasBrowser) {
  console.log(
    'There is no Chrome or Chromium on this machine: installing Chromium, and as root on Debian also Xvfb and chromium-headless-shell.',
  );
  const cli = ['dist/cli/main.js', 'install-browser', '--headful', '--yes'];
  const { status } = spawnSync(process.execPath, cli, { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
  if (process.getuid?.() === 0) installHeadlessShell();
}

/** Without it, the tests run on the browser that was installed. */
function installHeadlessShell() {
  const { TMPDIR: _unreadable, ...env } = process.env; // apt-get's user may not be allowed to read this folder.
  const args = ['install', '-y', '-qq', '--no-install-recommends', 'chromium-headless-shell'];
  spawnSync('apt-get', args, { stdio: 'ignore', env: { ...env, DEBIAN_FRONTEND: 'noninteractive' } });
}
