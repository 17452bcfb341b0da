import { expect, it, vi } from 'vitest';
import { missing } from '../../examples/bullmq/missing.js';
import { Program } from '../cli/support.js';
import { useLocalPool } from '../support/local.js';
import { argumentsOf, EXAMPLE_TIMEOUT, startExample } from './support.js';

vi.setConfig({ testTimeout: EXAMPLE_TIMEOUT });

const used = useLocalPool({ pools: [{ name: 'default', size: 2 }] });
const lack = missing();

it.skipIf(lack !== undefined)(
  `bullmq: a killed worker loses no page and no browser${lack ? ` (skipped: ${lack})` : ''}`,
  async () => {
    const before = used.local.stats().granted;
    const example = startExample('bullmq', used.local);
    expect(await example.ended).toEqual({
      code: 0,
      stdout: [
        'A worker is killed while it reads page 3.',
        'Page 1: started 1x, lost its worker 0x',
        'Page 2: started 2x, lost its worker 0x',
        'Page 3: started 2x, lost its worker 1x',
        'Page 4: started 1x, lost its worker 0x',
        'Page 5: started 1x, lost its worker 0x\n',
      ].join('\n'),
      stderr: '',
    });
    expect(used.local.stats()).toMatchObject({ granted: before + 7, leased: 0 });
    // The temporary folder of the killed worker may stay, but no process: neither Redis nor a worker.
    await expect.poll(() => argumentsOf(example)).toBe('');
  },
);

it('bullmq: prints how to install Redis where it is missing', async () => {
  const example = new Program(['--import', 'tsx', 'examples/bullmq/main.ts'], { PATH: '/nowhere' });
  const stdout = 'Skipped: there is no redis-server on this machine (apt-get install redis-server).\n';
  expect(await example.ended).toEqual({ code: 0, stdout, stderr: '' });
});
