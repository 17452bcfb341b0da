import { expect, it } from 'vitest';
import { planJobs } from '../../src/cli/demo-jobs.js';

it.each([
  [
    ['playwright-core', 'puppeteer-core', 'chromium-bidi'],
    '3 jobs, 2 browsers: one job must wait for a browser.',
    [],
  ],
  [
    ['playwright-core', 'chromium-bidi'],
    '1 job, 1 browser',
    [
      'puppeteer cdp. To add it: npm install puppeteer-core',
      'puppeteer bidi. To add it: npm install puppeteer-core',
    ],
  ],
  [
    ['puppeteer-core', 'chromium-bidi'],
    '2 jobs, 1 browser: one job must wait for a browser.',
    ['playwright cdp. To add it: npm install playwright-core'],
  ],
])('runs the jobs of the installed packages: %j', (installed, headline, leftOut) => {
  const plan = planJobs((name) => installed.includes(name));
  expect(plan).toMatchObject({ headline, leftOut: leftOut.map((text) => `Left out: ${text}`) });
  expect(plan.jobs).toHaveLength(3 - leftOut.length);
});

it('refuses to run without any library', () => {
  expect(() => planJobs(() => false)).toThrow('npm install playwright-core, or npm install puppeteer-core');
});
