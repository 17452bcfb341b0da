// Leases a browser with each of two copies of this library. Its argument is the folder of the second one.
import { pathToFileURL } from 'node:url';
import { connector } from './plain.mjs';

for (const folder of [new URL('../../../', import.meta.url), pathToFileURL(`${process.argv[2]}/`)]) {
  const { leaseBrowser } = await import(new URL('dist/index.js', folder));
  await leaseBrowser('test', { connector });
}
process.stdout.write('leased\n');
await new Promise(() => {});
