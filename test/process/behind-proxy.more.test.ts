import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { leaseBrowser, type RunEvent } from '../../src/index.js';
import { behindProxy, CREDENTIALS } from '../support/behind-proxy.js';
import { TOKEN } from '../support/fake-service.js';
import { plainConnector } from '../support/plain-connector.js';
import { hasOpenSsl } from '../support/self-signed.js';
import { guardOf, start } from './support.js';

describe.runIf(hasOpenSsl)('a process behind a proxy with a password', () => {
  it.each(['process.exit', 'SIGKILL'])(
    'releases its browser after %s, and no process shows the password',
    async (end) => {
      const { proxy, service, ca, baseUrl } = await behindProxy({
        isEncrypted: true,
        credentials: CREDENTIALS,
      });
      const file = join(mkdtempSync(join(tmpdir(), 'ca-')), 'ca.pem');
      writeFileSync(file, ca!);
      // The private authority is named once by the option, and once by Node's own variable.
      const isKilled = end === 'SIGKILL';
      const program = start('behind-proxy', [], isKilled ? {} : { NODE_EXTRA_CA_CERTS: file });
      const settings = { baseUrl, token: TOKEN, proxy: proxy.url, ...(isKilled && { ca }) };
      program.child.stdin!.write(`${JSON.stringify(settings)}\n`);
      await program.prints(/leased/);
      const guard = guardOf(program);
      const shown = guard.args + readFileSync(`/proc/${guard.pid}/environ`, 'utf8');
      expect(shown).not.toMatch(/canary|BEGIN CERTIFICATE/);
      if (isKilled) program.child.kill('SIGKILL');
      else program.child.stdin!.write('exit\n');
      expect(await program.exit).toEqual(isKilled ? [null, 'SIGKILL'] : [7, null]);
      await expect.poll(() => service.released).toEqual(['session-1']);
      await expect.poll(guard.isOver).toBe(true);
    },
  );
});

it('holds a lease open through a proxy that cuts idle connections, because of its pings', async () => {
  // Twice the pause between two pings.
  const idleTimeout = 5000;
  const { proxy, poolWith } = await behindProxy({ idleTimeout });
  const pool = poolWith({ proxy: proxy.url });
  const events: RunEvent[] = [];
  const lease = await leaseBrowser(pool, {
    connector: plainConnector,
    replays: 'off',
    release: 'reuse',
    onEvent: (event) => events.push(event),
  });
  const dialled = proxy.requested.length;
  await sleep(2 * idleTimeout);
  expect(lease.signal.aborted).toBe(false);
  // The connection of the requests had no pings: the release opens another one.
  expect(await lease.release()).toMatchObject({ released: 'reused', cleanupErrors: [] });
  expect(proxy.requested.slice(dialled)).toEqual(['service.test:80']);
  expect(events.map(({ type }) => type)).not.toContain('connection-dropped');
});

it('advises a shorter pollTimeout if the proxy cuts an acquire request that waits', async () => {
  const { proxy, service, poolWith } = await behindProxy({ idleTimeout: 300 });
  service.script('acquire', () => {});
  const failed = poolWith({ proxy: proxy.url }).acquire();
  await expect(failed).rejects.toThrow(/no complete response.* pollTimeout/);
});
