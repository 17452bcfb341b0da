import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { stop, transform } from 'esbuild';
import type { Library } from '../world.js';
import { placeFailpoints, type Failpoint } from './place-failpoints.js';

/** Files whose code a lease awaits between the call and the release. */
const WITH_FAILPOINTS =
  /^(lease|service)\/(?!release-process)|^connect\/(connect-session|clean-browser|cdp-client)|^shared\/abort/;

/** A build of src/ with a failpoint in every `await` of the lease's path, in a folder that `remove` deletes. */
export async function buildLibrary(): Promise<{
  library: Library;
  failpoints: Failpoint[];
  remove: () => void;
}> {
  // Inside node_modules, where the build finds its packages and no watcher looks.
  mkdirSync('node_modules/.cache', { recursive: true });
  const folder = mkdtempSync('node_modules/.cache/failpoints-');
  const failpoints: Failpoint[] = [];
  const sources = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  );
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  for (const name of sources) {
    const source = readFileSync(join('src', name), 'utf8');
    const placed = WITH_FAILPOINTS.test(name) ? placeFailpoints(name, source, failpoints.length) : undefined;
    if (placed) failpoints.push(...placed.failpoints);
    const { code } = await transform(placed?.code ?? source, { loader: 'ts', target: 'es2022' });
    const path = join(folder, name.replace(/ts$/, 'js'));
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, code);
  }
  // Its process would outlive the build.
  await stop();
  const load = (name: string) =>
    import(/* @vite-ignore */ pathToFileURL(join(folder, name)).href) as Promise<object>;
  const [api, services, ...parts] = await Promise.all(
    ['index', 'services', 'pool/host', 'connect/socket', 'shared/clock'].map((name) => load(`${name}.js`)),
  );
  // The virtual clock does not see the time of an import.
  for (const name of ['lease/lease.js', 'connect/connect-session.js', 'jobs/run-job.js']) await load(name);
  const library = Object.assign({ api, services }, ...parts) as Library;
  return { library, failpoints, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
