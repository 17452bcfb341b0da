import { afterEach, expect, it, vi } from 'vitest';
import type { BrowserPool } from '../../src/index.js';
import { CdpClient } from '../../src/wire/cdp-client.js';
import { ConnectedLease } from '../../src/lease/lease.js';
import { PendingReleases } from '../../src/pool/pending-releases.js';
import type { Reply } from '../../src/pool/release.js';
import { kernel } from '../../src/services.js';
import { explainFailure, runCampaign } from './campaign.js';

// A broken release shows after some hundred lifecycles.
vi.setConfig({ testTimeout: 900_000 });

afterEach(() => vi.restoreAllMocks());

type Sent = Promise<Reply>;

/** Replaces the requests that release a browser. `send` sends the real one. */
function breakRelease(broken: (send: () => Sent, count: number) => Sent): void {
  const { sender } = PendingReleases.prototype;
  let count = 0;
  vi.spyOn(PendingReleases.prototype, 'sender').mockImplementation(function (this: PendingReleases, ...how) {
    const send = sender.apply(this, how);
    return (...message) => {
      const sendReal = () => send(...message);
      return message[0].method === 'GET' ? sendReal() : broken(sendReal, ++count);
    };
  });
}

/** @param firstSeed A rare coincidence is soon found from a world shortly before it; from any other world, later. */
async function brokenRules(firstSeed = 1): Promise<{ seed: number; rules: string; lifecycles: number }> {
  const { failures, lifecycles } = await runCampaign({ firstSeed, lifecycles: 20_000 });
  const [{ seed, violations } = { seed: 0, violations: [] }] = failures;
  return { seed, rules: violations.join(), lifecycles };
}

it('detects that one release in a hundred is not sent', async () => {
  breakRelease(async (send, count) => (count % 100 === 0 ? { status: 204, isSent: true } : send()));
  const { rules, lifecycles } = await brokenRules();
  expect(lifecycles).toBeLessThan(500);
  expect(rules).toMatch(/lost s\d+/);
});

it('detects a release that is repeated after its confirmation', async () => {
  breakRelease(async (send, count) => {
    const answer = await send();
    return count % 100 === 0 ? send() : answer;
  });
  expect((await brokenRules()).rules).toContain('after its confirmation');
});

it('detects a release that is repeated without an ownership check', async () => {
  breakRelease(async (send) => {
    const answer = await send();
    return answer.isSent && answer.status === undefined ? send() : answer;
  });
  expect((await brokenRules(270)).rules).toMatch(/released s\d+, which is leased to call \d+/);
});

it.for(['Network.clearBrowserCache', 'Target.closeTarget', 'Target.disposeBrowserContext'])(
  'detects that a browser is reused without %s',
  async (broken) => {
    const { send } = CdpClient.prototype;
    vi.spyOn(CdpClient.prototype, 'send').mockImplementation(function (this: CdpClient, ...args) {
      return args[0] === broken ? Promise.resolve({}) : send.apply(this, args);
    });
    // Pages that stay are detected by the library itself: it destroys the browser.
    const isDetected = broken.startsWith('Target.');
    // A campaign ends with its first failure.
    const lifecycles = isDetected ? 100 : 500;
    const { failures, released } = await runCampaign({ firstSeed: 1, lifecycles });
    expect(released).toBeGreaterThan(0);
    expect(failures[0]?.violations.join() ?? '').toMatch(isDetected ? /^$/ : /left .* for the next lease/);
  },
);

it('detects that the browser of a lost response is not searched for', async () => {
  vi.spyOn(kernel, 'find').mockReturnValue(undefined);
  expect((await brokenRules(40)).rules).toMatch(/did not search for s\d+/);
});

it('detects a browser that is released during its callback, and prints the log of that world', async () => {
  const { runCallback } = ConnectedLease.prototype;
  vi.spyOn(ConnectedLease.prototype, 'runCallback').mockImplementation(async function (
    this: ConnectedLease<unknown>,
    ...args
  ) {
    const { pool, sessionId } = this.context;
    await (pool.api as BrowserPool).release(sessionId);
    return runCallback.apply(this, args);
  });
  const { seed, rules } = await brokenRules();
  expect(rules).toMatch(/released s\d+ while a socket to its browser was open/);
  const explanation = await explainFailure(seed);
  expect(explanation).toContain(`SEED=${seed} npm run simulate`);
  expect(explanation).toMatch(/service: s\d+ granted to call \d+/);
});
