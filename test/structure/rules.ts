/**
 * Who may import whom among the folders of src/, denied by default. `entry` are the files that stand directly in src/.
 * A file in the list, instead of a folder, allows that file alone.
 */
export const arrows: Readonly<Record<string, readonly string[]>> = {
  entry: ['entry', 'cli', 'fixtures', 'map', 'lease', 'local', 'connect', 'service', 'shared'],
  cli: ['map', 'lease', 'local', 'connect', 'service', 'shared'],
  fixtures: ['lease', 'service', 'shared'],
  map: ['lease', 'connect', 'service', 'shared'],
  lease: ['connect', 'service', 'shared'],
  connect: ['service', 'shared'],
  // The local pool is the other side of the API: it shares the types of the wire with the client and nothing else.
  local: ['service/wire.ts', 'shared'],
  service: ['shared'],
  shared: [],
};

/** Loaded only through the subpath that is named after them, or by `import()`. */
export const libraries = [
  'playwright-core',
  'puppeteer-core',
  'chromium-bidi',
  '@playwright/test',
  'vitest',
] as const;

/** Tens of milliseconds each: whoever imports the root does not pay for them. */
export const heavy = ['undici', 'ws', 'chrome-launcher', 'jose', 'commander'] as const;

/** Files that import what the person names when they run: where that leads can't be checked. */
export const runTimeImports: readonly string[] = ['src/cli/map/load-task.ts'];

/** Packages that the build takes into our own files: nobody has to install them. */
export const bundled = ['valibot', 'leven'] as const;
