import { spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { expect, it } from 'vitest';
import { serveProxy } from '../../src/index.js';
import { startCli } from '../cli/support.js';
import { useLocalPool } from '../support/local.js';
import { startProgram, variablesOf } from '../support/program.js';
import { Site } from '../support/site.js';
import { packageOfTests } from './support.js';

const used = useLocalPool({ pools: [{ name: 'default', size: 1 }] });

const agentBrowser = packageOfTests('agent-browser');
const skipped = agentBrowser ? '' : ' (skipped: npm ci --prefix test/sdks installs it)';

it.skipIf(!agentBrowser)(`agent-browser buys in the browser of exec${skipped}`, async () => {
  const home = mkdtempSync(join(tmpdir(), 'h-'));
  const PATH = `${join(agentBrowser!, '../.bin')}${delimiter}${process.env['PATH']}`;
  const variables = { ...variablesOf(used.local), PATH, HOME: home, AGENT_BROWSER_SOCKET_DIR: home };
  const words = ['exec', 'default', '--', 'sh', 'examples/agent-browser/buy.sh'];
  const { code, stdout, stderr } = await startCli(words, variables).ended;
  expect(code, stdout + stderr).toBe(0);
  expect(stdout).toMatch(/button "Buy"[^]*\nBought\n/);
  expect(used.local.stats().leased).toBe(0);
});

/** Programs in Python: the package that each needs, and what it prints. */
const PROGRAMS = [
  { program: 'python/client.py', needs: 'websockets', prints: 'websockets read: Shop\n' },
  { program: 'browser-use/agent.py', needs: 'browser_use', prints: 'browser-use read: Tea: 3 EUR\n' },
];

for (const { program, needs, prints } of PROGRAMS) {
  const isInstalled = spawnSync('python3', ['-c', `import ${needs}`]).status === 0;
  const reason = isInstalled ? '' : ` (skipped: python3 has no package ${needs})`;
  it.skipIf(!isInstalled)(
    `${program} reads a page as the program of exec, and at an address of a proxy${reason}`,
    async () => {
      await using site = await Site.open((_, response) => {
        response.setHeader('content-type', 'text/html');
        response.end('<link rel=icon href=data:,><title>Shop</title><p>Tea: 3 EUR</p><button>Buy</button>');
      });
      const words = [`examples/${program}`, site.url];
      // The agent writes its settings there.
      const HOME = mkdtempSync(join(tmpdir(), 'h-'));
      const variables = { ...variablesOf(used.local), HOME, ANONYMIZED_TELEMETRY: 'false' };
      const leased = await startCli(['exec', 'default', '--', 'python3', ...words], variables).ended;
      expect(leased.stdout, leased.stderr).toBe(prints);
      await using proxy = await serveProxy(used.pool);
      const named = [...words, `${proxy.url}/alice`];
      const served = await startProgram(named, variables, { command: 'python3' }).ended;
      expect(served.stdout, served.stderr).toBe(prints);
    },
  );
}
