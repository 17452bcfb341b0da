import { expect, it } from 'vitest';
import { FakeService, TOKEN } from '../support/fake-service.js';
import { runCli, startClient } from './support.js';

const HELP = ' For help, run: pooled-browser --help';
const SEPARATOR =
  ' Put -- before the command, so that its options are not read as options of exec: pooled-browser exec POOL -- COMMAND.';

it.each([
  [['exec', 'scrapers', 'node', '-e', '1'], `unknown option '-e'.${SEPARATOR}${HELP}`],
  [['exec', 'scrapers', '-e', '--', 'node'], `unknown option '-e'.${HELP}`],
  [
    ['exec', 'scrapers', '--relase', 'reuse', 'node'],
    `unknown option '--relase' (Did you mean --release?)${HELP}`,
  ],
  [['flush', '--yse', 'a'], `unknown option '--yse' (Did you mean --yes?)${HELP}`],
  [['flush'], `missing required argument 'pool'.${HELP}`],
  [['flsh'], `unknown command 'flsh' (Did you mean flush?)${HELP}`],
])('explains the wrong usage %j on one line, in whole sentences', async (args, message) => {
  const { code, stderr } = await runCli(args);
  expect({ code, stderr }).toStrictEqual({ code: 2, stderr: `pooled-browser: ${message}\n` });
});

it('doctor does not show the 401 of a request without a token as a finding', async () => {
  await using service = await FakeService.start();
  service.script('replays', (response, { headers }) => {
    response.writeHead(headers.authorization === `Bearer ${TOKEN}` ? 404 : 401).end();
  });
  const { stdout } = await startClient(['doctor'], service.options).ended;
  expect(stdout).toContain('accepted');
  expect(stdout).not.toMatch(/status \d+/);
});
