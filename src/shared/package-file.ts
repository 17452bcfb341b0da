import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** Path of a file of this package. Undefined if the application is bundled, and the package is not installed. */
export function packageFile(path: string): string | undefined {
  // A CommonJS bundle has no `import.meta.url`.
  const { url } = import.meta as { url?: string };
  for (const from of [url, process.argv[1], join(process.cwd(), 'none')]) {
    try {
      return join(dirname(createRequire(from!).resolve('pooled-browser/package.json')), path);
    } catch {
      // The next place may have the package.
    }
  }
  return undefined;
}
