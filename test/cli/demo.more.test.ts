import { expect, it, onTestFinished } from 'vitest';
import { installWithoutLibraries, interruptInTime, Program, startCli } from './support.js';

it('leases with each library and protocol, lets one job wait, and prints each step', async () => {
  const demo = wholeDemo();
  const { code, stdout, stderr } = await demo.ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  for (const who of ['playwright cdp', 'puppeteer cdp', 'puppeteer bidi']) {
    for (const step of STEPS) expect(stdout).toMatch(new RegExp(`^ +[\\d.]+ s  ${who} +${step}`, 'm'));
  }
  expect(stdout).toContain('waits: no browser is free');
  await demo.leavesNothing();
});

const STEPS = [
  'requests a browser from the pool',
  'leased browser \\w{8}',
  'connects over',
  'connected',
  'callback runs',
  'opened "The Little Shop"',
  'callback ended: ok',
  'cleaned up',
  'replays: none',
  'released: back in the pool',
];

it('ends with a summary, and with code that runs unchanged against serve', async () => {
  const { stdout } = await wholeDemo().ended;
  expect(stdout).toMatch(
    /^library +protocol +acquire +connect +callback +cleanup +release +released +replays$/m,
  );
  expect(stdout.match(/reused +none$/gm)).toHaveLength(3);
  expect(stdout).toMatch(/^playwright cdp read +Order \d for Ada: Teapot .*, 24\.00 EUR$/m);
  expect(stdout).toMatch(/^puppeteer bidi read +Order \d for Grace: Lamp .*, 39\.50 EUR$/m);
  expect(await runAgainstServe(codeOf(stdout))).toMatchObject({
    code: 0,
    stdout: 'My page []\n',
    stderr: '',
  });
});

it.each([
  {
    installed: ['playwright-core', 'chromium-bidi'],
    headline: '1 job, 1 browser',
    leftOut: [
      'puppeteer cdp. To add it: npm install puppeteer-core',
      'puppeteer bidi. To add it: npm install puppeteer-core',
    ],
    library: 'playwright',
  },
  {
    installed: ['puppeteer-core'],
    headline: '1 job, 1 browser',
    leftOut: [
      'playwright cdp. To add it: npm install playwright-core',
      'puppeteer bidi. To add it: npm install chromium-bidi',
    ],
    library: 'puppeteer',
  },
  {
    installed: ['puppeteer-core', 'chromium-bidi'],
    headline: '2 jobs, 1 browser: one job must wait for a browser.',
    leftOut: ['playwright cdp. To add it: npm install playwright-core'],
    library: 'puppeteer',
  },
])(
  'runs with $installed only, and prints what it left out',
  async ({ installed, headline, leftOut, library }) => {
    const demo = new Program([installWithoutLibraries(...installed), 'demo']);
    onTestFinished(() => void demo.child.kill('SIGKILL'));
    const { code, stdout, stderr } = await demo.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.split('\n').slice(0, leftOut.length + 1)).toEqual([
      headline,
      ...leftOut.map((text) => `Left out: ${text}`),
    ]);
    expect(stdout.match(/reused +none$/gm)).toHaveLength(3 - leftOut.length);
    expect(stdout).toContain(`from 'pooled-browser/${library}';`);
    await demo.leavesNothing();
  },
);

it('prints what to install without any library', async () => {
  const { code, stderr } = await new Program([installWithoutLibraries(), 'demo']).ended;
  expect(code).toBe(1);
  expect(stderr).toContain('npm install playwright-core, or npm install puppeteer-core');
});

it.each([/3 jobs/, /requests a browser/, /callback runs/, /waits: no browser/])(
  'leaves nothing behind when it is interrupted after %s',
  async (step) => {
    const { code, stderr } = await interruptInTime(async () => {
      const demo = startDemo();
      await demo.prints(step);
      const ended = await demo.end('SIGINT');
      await demo.leavesNothing();
      return ended;
    });
    expect({ code, stderr }).toEqual({ code: 130, stderr: 'pooled-browser: Interrupted by SIGINT.\n' });
  },
);

it('prints how to get a browser on a machine without a browser', async () => {
  const { code, stderr } = await startDemo({ CHROME_PATH: '/nowhere' }).ended;
  expect(code).toBe(1);
  expect(stderr).toContain('/nowhere');
  expect(stderr).toContain('install-browser');
});

let whole: Program | undefined;

/** One run for several tests. */
function wholeDemo(): Program {
  return (whole ??= startCli(['demo']));
}

function startDemo(environment?: Record<string, string>): Program {
  const demo = startCli(['demo'], environment);
  onTestFinished(() => void demo.child.kill('SIGKILL'));
  return demo;
}

function codeOf(stdout: string): string {
  const [, code] = /node hello\.mjs\n\n([^]*)\n\nWith a service/.exec(stdout) ?? [];
  return code!.replace('https://example.com', 'data:text/html,<title>My page</title>');
}

async function runAgainstServe(code: string) {
  const serve = startCli(['serve', '--size', '1', '--json']);
  onTestFinished(() => void serve.child.kill('SIGKILL'));
  const [line] = await serve.prints(/.*"serving".*/);
  const { baseUrl, token } = JSON.parse(line) as { baseUrl: string; token: string };
  const environment = { BROWSER_POOL_BASE_URL: baseUrl, BROWSER_POOL_ACCESS_TOKEN: token };
  const ended = await new Program(['--input-type=module', '--eval', code], environment).ended;
  await serve.end('SIGINT');
  return ended;
}
