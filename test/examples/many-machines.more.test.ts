import { expect, it, vi } from 'vitest';
import { missing } from '../../examples/many-machines/missing.js';
import { Program } from '../cli/support.js';
import { useLocalPool } from '../support/local.js';
import { argumentsOf, EXAMPLE_TIMEOUT, startExample } from './support.js';

vi.setConfig({ testTimeout: EXAMPLE_TIMEOUT });

const used = useLocalPool({ pools: [{ name: 'default', size: 2 }] });
const lack = missing();

it.skipIf(lack !== undefined)(
  `many-machines: a killed worker loses no page and no browser${lack ? ` (skipped: ${lack})` : ''}`,
  async () => {
    const before = used.local.stats().granted;
    const example = startExample('many-machines', used.local);
    expect(await example.ended).toEqual({
      code: 0,
      stdout: [
        'A worker is killed while it reads page 3. The other one takes it over after 30 to 40 s.',
        'Page 1: fulfilled, 1 attempt',
        'Page 2: fulfilled, 2 attempts',
        'Page 3: fulfilled, 1 attempt',
        'Page 4: fulfilled, 1 attempt',
        'Page 5: fulfilled, 1 attempt\n',
      ].join('\n'),
      stderr: '',
    });
    expect(used.local.stats().granted).toBeGreaterThanOrEqual(before + 2);
    expect(used.local.stats().leased).toBe(0);
    // The temporary folder of the killed worker may stay, but no process: neither Redis nor a worker.
    await expect.poll(() => argumentsOf(example)).toBe('');
  },
);

it('many-machines: prints how to install Redis where it is missing', async () => {
  const example = new Program(['--import', 'tsx', 'examples/many-machines/main.ts'], { PATH: '/nowhere' });
  const stdout = 'Skipped: there is no redis-server on this machine (apt-get install redis-server).\n';
  expect(await example.ended).toEqual({ code: 0, stdout, stderr: '' });
});
