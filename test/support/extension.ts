import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

/** Unpacked extensions of Chromium in folders of this machine, by name, for the whole test file. */
export function useExtensions<Name extends string>(
  extensions: Record<Name, { manifest: object; files: Record<string, string> }>,
): Record<Name, string> {
  const folders = {} as Record<Name, string>;
  for (const name of Object.keys(extensions) as Name[]) {
    const { manifest, files } = extensions[name];
    folders[name] = mkdtempSync(join(tmpdir(), `extension-${name}-`));
    const whole = { manifest_version: 3, name, version: '1.0', ...manifest };
    for (const [file, text] of Object.entries({ ...files, 'manifest.json': JSON.stringify(whole) }))
      writeFileSync(join(folders[name], file), text);
  }
  afterAll(() => {
    for (const folder of Object.values<string>(folders)) rmSync(folder, { recursive: true });
  });
  return folders;
}

/** An extension that adds an attribute to each page. */
export const marking = (mark: string) => ({
  manifest: { content_scripts: [{ matches: ['<all_urls>'], js: ['mark.js'], run_at: 'document_start' }] },
  files: { 'mark.js': `document.documentElement.setAttribute('data-${mark}', '')` },
});
