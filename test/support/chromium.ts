import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import puppeteer from 'puppeteer-core';
import { findBrowser } from '../../src/local.js';

/** A Chromium with a debugging port, without the local pool. */
export interface Chromium extends AsyncDisposable {
  /** URL of its WebSocket. */
  readonly url: string;
  /** Ends its process at once. */
  kill(): void;
}

/** @param flags Further arguments. */
export async function startChromium(...flags: string[]): Promise<Chromium> {
  const userDataDir = await mkdtemp(join(tmpdir(), 'debugging-port-'));
  const args = ['--no-sandbox', ...flags];
  const browser = await puppeteer.launch({
    executablePath: await findBrowser(),
    args,
    ignoreDefaultArgs: ['--disable-extensions'],
    userDataDir,
  });
  return {
    url: browser.wsEndpoint(),
    kill: () => void browser.process()?.kill('SIGKILL'),
    [Symbol.asyncDispose]: async () => {
      await browser.close();
      await rm(userDataDir, { recursive: true, force: true });
    },
  };
}
