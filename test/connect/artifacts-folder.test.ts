import { existsSync, rmSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { createArtifactsFolder } from '../../src/connect/playwright.js';

const exitListeners = () => process.listeners('exit');

it('is a new folder in the temporary folder, with the name of this library', async () => {
  const [one, two] = [await createArtifactsFolder(), await createArtifactsFolder()];
  expect(existsSync(one.path)).toBe(true);
  expect(dirname(one.path)).toBe(tmpdir());
  expect(basename(one.path)).toMatch(/^pooled-browser-artifacts-/);
  expect(two.path).not.toBe(one.path);
  await Promise.all([one.remove(), two.remove()]);
});

it('is removed with its content; a second call has no effect', async () => {
  const before = exitListeners();
  const folder = await createArtifactsFolder();
  await mkdir(join(folder.path, 'below'));
  await writeFile(join(folder.path, 'below', 'download'), 'bytes');
  await folder.remove();
  expect(existsSync(folder.path)).toBe(false);
  await folder.remove();
  expect(exitListeners()).toEqual(before);
});

it('is removed when the process ends first', async () => {
  const before = exitListeners();
  const folder = await createArtifactsFolder();
  await writeFile(join(folder.path, 'download'), 'bytes');
  const atExit = exitListeners().find((listener) => !before.includes(listener));
  atExit!(0);
  expect(existsSync(folder.path)).toBe(false);
  await folder.remove();
});

it('may already be removed when the process ends', async () => {
  const before = exitListeners();
  const folder = await createArtifactsFolder();
  rmSync(folder.path, { recursive: true });
  const atExit = exitListeners().find((listener) => !before.includes(listener));
  expect(() => atExit!(0)).not.toThrow();
});
