import { expect, it } from 'vitest';
import { startBrowserless } from '../support/browserless-server.js';
import { CONTRACTS, ContractServer } from '../support/contract-server.js';
import { TOKEN } from '../support/fake-service.js';
import { variablesOf } from '../support/program.js';
import { guardOf, start } from './support.js';

it.each(CONTRACTS)(
  '$name: a killed process releases its session, through a process whose arguments contain no secret',
  async (contract) => {
    await using server = await ContractServer.start(contract);
    const way = contract.name === 'browserless sessions' ? 'guarded-sessions' : 'guarded';
    const program = start('ending', [way], {
      BROWSER_POOL_SERVICE: contract.service.name,
      ...variablesOf({ baseUrl: server.baseUrl, token: TOKEN }),
    });
    await program.prints(/leased/);
    expect(server.active).toHaveLength(1);
    expect(guardOf(program).args).not.toContain('canary');
    program.child.kill('SIGKILL');
    await program.ended;
    await expect.poll(() => server.active).toEqual([]);
    // A session that ends with its connection has ended before.
    if (!contract.endsWithConnection) expect(server.released).toEqual([server.sessions[0]!.id]);
  },
);

it('browserless: the browser of a killed process ends with its connection', async () => {
  await using server = await startBrowserless();
  const program = start('ending', ['guarded'], {
    BROWSER_POOL_SERVICE: 'browserless',
    ...variablesOf({ baseUrl: server.baseUrl, token: TOKEN }),
  });
  await program.prints(/leased/);
  expect(server.active()).toBe(1);
  program.child.kill('SIGKILL');
  await expect.poll(server.active).toBe(0);
});
