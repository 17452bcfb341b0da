import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { startRentals } from '../../examples/own-service/server.js';
import { startChromium } from '../support/chromium.js';
import { contractOf, ContractServer } from '../support/contract-server.js';
import { TOKEN } from '../support/fake-service.js';
import { expectRefusal, runHere } from './support.js';

const NAMES: Readonly<Record<string, string>> = { 'selenium grid': 'webdriver' };

it.each([contractOf('browserbase'), contractOf('selenium grid')])(
  '$name: doctor checks the key without a lease, and leases once with --lease',
  async (contract) => {
    await using browser = await startChromium();
    await using server = await ContractServer.start(contract);
    const service = NAMES[contract.name] ?? contract.name;
    vi.stubEnv('BROWSER_POOL_SERVICE', service);
    const doctor = (...args: string[]) =>
      runHere(['doctor', ...args], { baseUrl: server.baseUrl, token: TOKEN });
    const { code, stdout, stderr } = await doctor();
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain(`${service} at ${server.baseUrl}/`);
    expect(stdout).toMatch(/✓ token +accepted/);
    expect(stdout).toContain('nothing is leased without --lease');
    expect(server.sessions).toEqual([]);
    server.browserUrl = browser.url;
    const ended = await doctor('--lease', '--acquire-timeout', '60s');
    expect(ended.code).toBe(0);
    expect(ended.stdout.match(/1 \+ 1 = 2/g)).toHaveLength(1);
    expect([server.sessions.length, server.active.length]).toEqual([1, 0]);
    expect(stdout + ended.stdout + ended.stderr).not.toContain('canary');
    server.isExpired = true;
    const refused = await doctor('--json');
    const { checks } = JSON.parse(refused.stdout) as { checks: { check: string; status: string }[] };
    expect(checks.find(({ status }) => status === 'failed')).toMatchObject({ check: 'token' });
  },
);

it('names the variables of a missing key, and the services', async () => {
  const none = { token: 'for-kernel' };
  expectRefusal(await runHere(['acquire', 'x', '--service', 'steel'], none), 'variable STEEL_API_KEY.');
  expectRefusal(
    await runHere(['acquire', 'x', '--service', 'stel'], none),
    'one of kernel, kernel:browsers, webdriver',
  );
});

const MODULE = `export const mine = {
  name: 'mine', idField: 'number', waits: 'never', auth: { header: 'x-rental-key' },
  acquire: () => ({ method: 'POST', path: '/rentals', body: {} }),
  grant: ({ rental }) => ({ id: rental.number, session: rental, cdpUrl: rental.socket }),
  release: (id) => ({ method: 'DELETE', path: '/rentals/' + id }),
  sessions: {
    list: (page) => (page === 0 ? { method: 'GET', path: '/rentals' } : undefined),
    read: ({ rentals }) => rentals.map(({ number, reference }) => ({ id: number, lease: reference })),
  },
};`;

it('takes the path of a module with an own service, and names a module without one', async () => {
  const key = 'a-key-of-this-test';
  await using server = await startRentals(key);
  const folder = mkdtempSync(join(tmpdir(), 'own-service-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'mine.mjs');
  writeFileSync(path, MODULE);
  vi.stubEnv('BROWSER_POOL_SERVICE', path);
  const at = { baseUrl: server.baseUrl, token: key };
  expect(await runHere(['leases', '--json'], at)).toMatchObject({ code: 0, stdout: '[]\n' });
  const doctor = await runHere(['doctor'], at);
  expect(doctor.stdout).toContain(`mine at ${server.baseUrl}`);
  expectRefusal(
    await runHere(['leases', '--service', './test/cli/task.mjs'], at),
    'needs a service as its default',
  );
  expectRefusal(
    await runHere(['leases', '--service', './no.ts'], at),
    "./no.ts of --service can't be imported",
  );
  expectRefusal(await runHere(['doctor', '--service', 'unknown'], at), 'service must be one of kernel');
});
