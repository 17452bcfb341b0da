import { defineConfig } from '@playwright/test';

export default defineConfig({
  testMatch: '*.suite.ts',
  outputDir: process.env['TMPDIR']!,
  workers: 1,
  timeout: 120_000,
  reporter: [['./step-reporter.ts']],
  use: { launchOptions: { executablePath: process.env['CHROME_PATH']!, args: ['--no-sandbox'] } },
});
