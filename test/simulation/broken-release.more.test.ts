import { afterEach, expect, it, vi } from 'vitest';
import { HeldSession, HeldSessions } from '../../src/service/held-sessions.js';
import { explainFailure, runCampaign } from './campaign.js';

// A broken release shows after some thousand lifecycles.
vi.setConfig({ testTimeout: 900_000 });

afterEach(() => vi.restoreAllMocks());

const { sender } = HeldSessions.prototype;
type Answer = Awaited<ReturnType<ReturnType<typeof sender>>>;

/** Replaces the requests of all releases. `send` sends the real one. */
function breakRelease(broken: (send: () => Promise<Answer>, count: number) => Promise<Answer>): void {
  let count = 0;
  vi.spyOn(HeldSessions.prototype, 'sender').mockImplementation(function (this: HeldSessions, ...args) {
    const send = sender.apply(this, args);
    return (request, timeout) => {
      const really = () => send(request, timeout);
      return request.method === 'GET' ? really() : broken(really, ++count);
    };
  });
}

it('detects that one release in a thousand is not sent', async () => {
  const confirmed = { status: 204, isSent: true };
  breakRelease(async (send, count) => (count % 1000 === 0 ? confirmed : send()));
  const { failures, lifecycles } = await runCampaign({ firstSeed: 1, lifecycles: 20_000 });
  expect(lifecycles).toBeLessThan(5000);
  expect(failures[0]?.violations.join()).toMatch(/lost s\d+/);
});

it('detects a release that is repeated after its confirmation', async () => {
  breakRelease(async (send, count) => {
    const answer = await send();
    if (count % 1000 === 0) await send();
    return answer;
  });
  const { failures } = await runCampaign({ firstSeed: 1, lifecycles: 20_000 });
  expect(failures[0]?.violations.join()).toContain('after its confirmation');
});

it('detects a release that is repeated without an ownership check', async () => {
  breakRelease(async (send) => {
    const answer = await send();
    return answer.status === undefined && answer.isSent ? send() : answer;
  });
  const { failures } = await runCampaign({ firstSeed: 1, lifecycles: 20_000 });
  expect(failures[0]?.violations.join()).toMatch(/released s\d+, which is leased to call \d+/);
});

it('detects a browser that is released during its callback, and prints the log of that world', async () => {
  const owned = vi.spyOn(HeldSession.prototype, 'release').mockResolvedValue('reused');
  const { failures } = await runCampaign({ firstSeed: 1, lifecycles: 1000 });
  expect(owned).toHaveBeenCalled();
  const explanation = await explainFailure(failures[0]!.seed);
  expect(explanation).toContain(`SEED=${failures[0]!.seed} npm run simulate`);
  expect(explanation).toMatch(/service: s\d+ granted to call \d+/);
});
