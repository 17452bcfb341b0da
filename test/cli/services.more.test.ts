import { expect, it } from 'vitest';
import { contractOf, ContractServer } from '../support/contract-server.js';
import { TOKEN } from '../support/fake-service.js';
import { expectRefusal, startCli } from './support.js';

const NAMES: Readonly<Record<string, string>> = { 'selenium grid': 'webdriver' };

it.each([contractOf('browserbase'), contractOf('selenium grid')])(
  '$name: doctor checks the key without a lease, and leases once with --lease',
  async (contract) => {
    await using server = await ContractServer.start(contract);
    const service = NAMES[contract.name] ?? contract.name;
    const environment = {
      BROWSER_POOL_SERVICE: service,
      BROWSER_POOL_BASE_URL: server.baseUrl,
      BROWSER_POOL_ACCESS_TOKEN: TOKEN,
    };
    const { code, stdout, stderr } = await startCli(['doctor'], environment).ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain(`${service} at ${server.baseUrl}/`);
    expect(stdout).toMatch(/✓ token +accepted/);
    expect(stdout).toContain('nothing is leased without --lease');
    expect(server.sessions).toEqual([]);
    // Its WebSocket plays a browser without pages, so the connection itself fails.
    const leased = startCli(['doctor', '--lease', '--json', '--acquire-timeout', '60s'], environment);
    await expect.poll(() => server.sessions.length).toBe(1);
    leased.child.kill('SIGINT');
    const ended = await leased.ended;
    await expect.poll(() => server.active).toEqual([]);
    expect(server.sessions).toHaveLength(1);
    expect(stdout + ended.stdout + ended.stderr).not.toContain('canary');
    server.isExpired = true;
    const refused = await startCli(['doctor', '--json'], environment).ended;
    const { checks } = JSON.parse(refused.stdout) as { checks: { check: string; status: string }[] };
    expect(checks.find(({ status }) => status === 'failed')).toMatchObject({ check: 'token' });
  },
);

it('names the variables of a missing key, and the services', async () => {
  const none = { BROWSER_POOL_ACCESS_TOKEN: 'for-kernel' };
  expectRefusal(
    await startCli(['acquire', 'x', '--service', 'steel'], none).ended,
    'variable STEEL_API_KEY.',
  );
  expectRefusal(
    await startCli(['acquire', 'x', '--service', 'stel'], none).ended,
    'one of kernel, webdriver',
  );
});
