import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { VirtualDisplay } from '../../../src/local/display/virtual-display.js';

/** Writes the line break late, as Xvfb does on a busy machine, and logs whether the write succeeded. */
const SLOW_XVFB = `#!/bin/sh
trap '' PIPE
printf 7 >&3
sleep 0.3
if printf '\\n' >&3; then echo alive > "$0.log"; else echo ended > "$0.log"; exit 1; fi
exec 3>&-
exec sleep 60
`;

it.runIf(process.platform === 'linux')(
  'reads the whole line in which Xvfb reports its display number',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'xvfb-'));
    const program = join(folder, 'Xvfb');
    writeFileSync(program, SLOW_XVFB);
    chmodSync(program, 0o755);
    vi.stubEnv('PATH', `${folder}:${process.env['PATH']}`);
    const display = new VirtualDisplay([{ headless: false, viewport: { width: 800, height: 600 } }]);
    expect((await display.start()).name).toBe(':7');
    await expect.poll(() => readFileSync(`${program}.log`, 'utf8')).toBe('alive\n');
    await display.close();
    rmSync(folder, { recursive: true });
  },
);
