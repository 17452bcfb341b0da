import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';

it('passes, and leaves a profile folder', async () => {
  expect(await mkdtemp(join(tmpdir(), 'pooled-browser-'))).toContain('pooled-browser-');
});
