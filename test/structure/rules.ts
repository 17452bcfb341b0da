/**
 * Who may import whom among the folders of src/, denied by default. `entry` are the files that stand directly in src/.
 * A file in the list, instead of a folder, allows that file alone.
 */
export const arrows: Readonly<Record<string, readonly string[]>> = {
  entry: [
    'entry',
    'cli',
    'fixtures',
    'map',
    'run',
    'local',
    'acquire',
    'replays',
    'connect',
    'service',
    'errors',
    'internal',
  ],
  cli: ['map', 'run', 'local', 'acquire', 'replays', 'connect', 'service', 'errors', 'internal'],
  fixtures: ['run', 'replays', 'service', 'errors', 'internal'],
  map: ['run', 'acquire', 'connect', 'service', 'errors', 'internal'],
  run: ['acquire', 'replays', 'connect', 'service', 'errors', 'internal'],
  acquire: ['service', 'errors', 'internal'],
  replays: ['service', 'errors', 'internal'],
  connect: ['service', 'errors', 'internal'],
  // The local pool speaks the interface from the other side: it shares the wire's types with the client and nothing else.
  local: ['service/wire.ts', 'errors', 'internal'],
  service: ['errors', 'internal'],
  errors: ['internal'],
  internal: [],
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
