import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { BrowserPool } from '../../src/index.js';
import { renewalDelay } from '../../src/pool/pending-releases.js';
import { coreOf } from '../../src/pool/pool-core.js';
import {
  nextStep,
  releaseBrowser,
  releaseFound,
  replyOf,
  type OwnerReply,
  type PriorRelease,
  type Reply,
  type Step,
} from '../../src/pool/release.js';
import { ANY_ID, type OwnerCheck, type SearchTicket } from '../../src/pool/tickets.js';
import { clock } from '../../src/shared/clock.js';
import { PoolConnectionError } from '../../src/shared/service-errors.js';
import { useFakeClock } from '../support/fake-clock.js';
import { settle } from '../support/played-browser.js';

const REQUEST = { method: 'GET', url: 'http://127.0.0.1/', auth: 'none' } as const;
const check = (isShown: boolean): OwnerCheck => ({ ...REQUEST, at: ['name'], is: 'ours', isShown });
/** How a service shows whose lease a session is. */
const OWNERS = {
  /** With the acquire response and later. */
  shown: check(true),
  /** A broken acquire response did not show it. */
  checked: check(false),
  /** Never. */
  hidden: null,
  /** Each session has one lease. */
  single: undefined,
};

type Sent = number | 'no answer' | 'not sent' | 'final' | 'ours';

function answer(to: OwnerReply['to'], sent: Sent): OwnerReply {
  if (sent === 'ours') return { to, status: 200, isSent: true, isOurs: true };
  if (typeof sent === 'number') return { to, status: sent, isSent: true };
  return { to, isSent: sent === 'no answer', isFinal: sent === 'final' };
}

type Row = [
  request: 'reuse' | 'destroy',
  owner: (keyof typeof OWNERS)[],
  before: PriorRelease[],
  answers: 'begins' | [to: OwnerReply['to'], ...Sent[]],
  next: Step['next'],
  prior?: PriorRelease,
];

const ALL = ['shown', 'checked', 'hidden', 'single'] as const;
const MARKED = ['shown', 'checked'] as const;
const ANY: PriorRelease[] = ['none', 'failed', 'unknown'];

const POLICY: Row[] = [
  // The beginning. A helper process begins with the prior release of the process that ended.
  ['reuse', [...ALL], ['none'], 'begins', 'release', 'none'],
  ['destroy', [...MARKED], ['failed', 'unknown'], 'begins', 'check owner'],
  ['destroy', ['hidden'], ['failed'], 'begins', 'release'],
  ['destroy', ['hidden'], ['unknown'], 'begins', 'unknown'],
  ['destroy', ['single'], ANY, 'begins', 'release', 'none'],
  // Whatever happened before, these answers are the end.
  ['reuse', [...ALL], ANY, ['release', 200, 202, 204], 'released'],
  ['reuse', [...ALL], ANY, ['release', 404, 410], 'gone'],
  // A refusal, which later requests would get too.
  ['reuse', [...ALL], ['none'], ['release', 302, 400, 401, 403, 'final'], 'failed', 'none'],
  ['reuse', ['shown'], ['failed'], ['release', 400, 'final'], 'failed', 'failed'],
  ['reuse', ['shown'], ['unknown'], ['release', 400, 'final'], 'unknown', 'unknown'],
  // Nothing happened.
  ['reuse', [...ALL], ['none'], ['release', 408, 409, 429, 503, 'not sent'], 'release', 'none'],
  ['reuse', [...MARKED], ['failed'], ['release', 503, 'not sent'], 'check owner', 'failed'],
  ['reuse', [...MARKED], ['unknown'], ['release', 500, 503, 'not sent'], 'check owner', 'unknown'],
  // The service reports a failure, or the release may have been processed.
  ['reuse', [...MARKED], ['none', 'failed'], ['release', 500, 501, 599], 'check owner', 'failed'],
  ['reuse', [...MARKED], ANY, ['release', 502, 504, 'no answer'], 'check owner', 'unknown'],
  ['reuse', ['hidden'], ['none', 'failed'], ['release', 500], 'release', 'failed'],
  ['reuse', ['hidden'], ANY, ['release', 502, 504, 'no answer'], 'unknown', 'unknown'],
  ['reuse', ['single'], ANY, ['release', 500, 502, 504, 'no answer'], 'release', 'none'],
  // A destroyed browser is not leased again.
  ['destroy', [...ALL], ['none'], ['release', 429, 500, 502, 503, 504, 'no answer'], 'release', 'none'],
  ['destroy', [...MARKED], ['unknown'], ['release', 500, 'no answer'], 'check owner', 'unknown'],
  // Whose session is it?
  ['reuse', [...MARKED], ['failed', 'unknown'], ['owner', 'ours'], 'release'],
  ['reuse', ['shown'], ['failed', 'unknown'], ['owner', 200], 'released'],
  ['reuse', ['checked'], ['failed', 'unknown'], ['owner', 200], 'unknown', 'unknown'],
  ['reuse', [...MARKED], ['failed'], ['owner', 404, 405, 410, 501], 'release', 'failed'],
  ['reuse', [...MARKED], ['unknown'], ['owner', 404, 405, 410, 501], 'unknown', 'unknown'],
  [
    'reuse',
    [...MARKED],
    ['failed', 'unknown'],
    ['owner', 302, 401, 403, 500, 503, 'no answer'],
    'check owner',
  ],
  ['reuse', [...MARKED], ['failed', 'unknown'], ['owner', 'final'], 'unknown', 'unknown'],
];

it.for(POLICY)('to %s a browser with owner %j, prior %j and answer %j: next is %s', (row) => {
  const [request, owners, priors, answers, next, after] = row;
  const [to, ...sent] = answers === 'begins' ? [] : answers;
  const tried = to ? sent.map((each) => answer(to, each)) : [undefined];
  const isRepeated = next === 'check owner' || (to === 'release' && next === 'release');
  const cases = owners.flatMap((owner) =>
    priors.flatMap((prior) => tried.map((one) => ({ owner, prior, one }))),
  );
  for (const { owner, prior, one } of cases) {
    const step = nextStep({ owner: OWNERS[owner], reuses: request === 'reuse' }, prior, one);
    expect(step.next, `${owner}, ${prior}, ${JSON.stringify(one)}`).toBe(next);
    if (after) expect(step.prior).toBe(after);
    if (one && isRepeated) expect(step.pauses).toBe(true);
  }
});

it('has further statuses which mean that the session no longer exists', () => {
  expect(nextStep({ owner: undefined, gone: [401], reuses: true }, 'none', answer('release', 401))).toEqual({
    next: 'gone',
    prior: 'none',
  });
});

it('repeats a release with growing pauses until its time is over, each request with half of the time', async () => {
  useFakeClock();
  const timeouts: number[] = [];
  const ticket = { id: 's', reuse: REQUEST, destroy: REQUEST };
  const send = async (_request: object, timeout: number) => {
    timeouts.push(timeout);
    return { status: 503, isSent: true };
  };
  let result: string | undefined;
  const began = performance.now();
  void releaseBrowser(ticket, { reuses: true, timeout: 10_000, send }).then((last) => (result = last));
  while (result === undefined) {
    vi.advanceTimersByTime(10);
    await settle();
  }
  expect(result).toBe('failed');
  expect(performance.now() - began).toBeLessThanOrEqual(10_010);
  expect(timeouts.length).toBeGreaterThan(5);
  expect(timeouts.length).toBeLessThan(12);
  for (const timeout of timeouts) expect(timeout).toBeLessThanOrEqual(5000);
  // A request that the end would interrupt is not sent.
  expect(timeouts.at(-1)).toBeGreaterThanOrEqual(1000);
});

it.each<[string, boolean, Step['next'][]]>([
  ['true', false, ['release', 'release']],
  ['false', true, ['failed', 'failed']],
  ['perhaps', false, ['failed', 'release']],
])('follows x-should-retry: %s, whatever the status means elsewhere', (value, isOver, next) => {
  const replies = [400, 503].map((status) =>
    replyOf({ status, headers: { 'x-should-retry': value }, body: '' }),
  );
  const steps = replies.map((reply) =>
    nextStep({ owner: undefined, reuses: true }, 'none', { ...reply, to: 'release' }),
  );
  expect(steps.map((step) => step.next)).toEqual(next);
  expect(replies.map(({ isFinal }) => isFinal === true)).toEqual([isOver, isOver]);
});

it.each([
  ['3000', 5, [0, 3000, 6000, 9000]],
  // More time than there is.
  ['60000', 2, [0, 9000]],
])(
  'waits as long as retry-after-ms: %s says, and sends a last request in time',
  async (value, most, times) => {
    useFakeClock();
    const ticket = { id: 's', reuse: REQUEST, destroy: REQUEST };
    const began = performance.now();
    const sent: number[] = [];
    const send = async () => {
      sent.push(performance.now() - began);
      return replyOf({ status: 429, headers: { 'retry-after-ms': value }, body: '' });
    };
    let isOver = false;
    void releaseBrowser(ticket, { reuses: true, timeout: 10_000, send }).then(() => (isOver = true));
    while (!isOver) {
      vi.advanceTimersByTime(10);
      await settle();
    }
    expect(sent.slice(0, times.length).map((time) => Math.round(time / 100) * 100)).toEqual(times);
    expect(sent.length).toBeLessThanOrEqual(most);
  },
);

describe('the search for the browser of an acquire request', () => {
  const TICKET = { id: ANY_ID, reuse: REQUEST, destroy: { ...REQUEST, url: `http://service/${ANY_ID}` } };
  const SEARCH: SearchTicket = {
    search: REQUEST,
    list: [],
    idField: 'id',
    at: ['mark'],
    is: 'ours',
    found: TICKET,
  };
  const none = { status: 200, body: '[]', isSent: true };
  const ours = {
    status: 200,
    body: '[{"id":"s1","mark":"ours"},{"id":"s2","mark":"of another"}]',
    isSent: true,
  };
  const failed = { status: 503, isSent: true };

  /** Searches in a service with these answers, by the time in ms; the service can lease a browser for `patience` ms. */
  async function search(patience: number, answer: (time: number) => Reply) {
    useFakeClock();
    const began = performance.now();
    const time = () => performance.now() - began;
    const released: string[] = [];
    const searches: number[] = [];
    let isOver = false;
    void releaseFound(SEARCH, {
      timeLeft: () => patience - time(),
      send: async () => {
        searches.push(time());
        return answer(time());
      },
      release: async ({ destroy }) => void released.push(destroy.url),
      onNothing: () => {},
    }).then(() => (isOver = true));
    while (!isOver) {
      vi.advanceTimersByTime(100);
      await settle();
    }
    return { released, searches, took: time() };
  }

  it.for([0, 2000, 6000, 20_000, 39_900])('finds a browser that is leased after %d ms', async (at) => {
    const { released, took } = await search(40_000, (time) => (time >= at ? ours : none));
    expect(released).toEqual(['http://service/s1']);
    expect(took - at).toBeLessThan(5500);
  });

  it('ends with a search after the last time at which the service can lease one', async () => {
    const { released, searches, took } = await search(40_000, () => none);
    expect(released).toEqual([]);
    expect(searches.at(-1)).toBeGreaterThanOrEqual(40_000);
    expect(took).toBeLessThan(46_000);
    expect(searches.length).toBeLessThan(20);
  });

  it('repeats a search that failed, also after the last time', async () => {
    const { released } = await search(0, (time) => (time < 30_000 ? failed : ours));
    expect(released).toEqual(['http://service/s1']);
  });

  it('gives up a service that does not answer', async () => {
    const { took } = await search(0, () => ({ isSent: true }));
    expect(took).toBeGreaterThan(60_000);
    expect(took).toBeLessThan(75_000);
  });

  it.for([404, 401, 501])('ends at once with status %d: the service has no search', async (status) => {
    const { searches } = await search(40_000, () => ({ status, isSent: true }));
    expect(searches.length).toBe(1);
  });
});

describe('the token of a later release', () => {
  const NOW = Date.parse('2026-11-25T12:00:00Z');
  const jwt = (claims: object) =>
    `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.signature`;
  const at = (seconds: number) => NOW / 1000 + seconds;

  it.each([
    ['none yet', undefined, 0],
    ['opaque', 'opaque-token', 60_000],
    ['with dots, but not a JWT', 'a.b.c', 60_000],
    ['a JWT of an hour', jwt({ iat: at(0), exp: at(3600) }), 60_000],
    ['a JWT of 40 s', jwt({ iat: at(0), exp: at(40) }), 20_000],
    ['a JWT of 40 s that was cached for 30 s', jwt({ iat: at(-30), exp: at(10) }), 5000],
    ['a JWT that is about to expire', jwt({ iat: at(-40), exp: at(0.1) }), 1000],
    ['a JWT without its beginning', jwt({ exp: at(40) }), 20_000],
    ['a JWT by a clock that is a day ahead', jwt({ iat: at(86_400), exp: at(86_440) }), 20_000],
    ['a JWT by a clock that is a day behind', jwt({ iat: at(-86_400), exp: at(-86_360) }), 20_000],
    ['a JWT without times', jwt({ sub: 'me' }), 60_000],
  ])(
    'the token is renewed after half of the rest of its life, from 1 s to 60 s: %s',
    (_what, token, delay) => {
      expect(renewalDelay(token, NOW)).toBe(delay);
    },
  );

  it('a token function that has returned no token yet, and always fails, is called with pauses', async () => {
    const timers = vi.spyOn(clock, 'setTimeout').mockImplementation(((call: () => void, delay: number) => {
      delays.push(delay);
      if (delay < 1000 && delays.length < 10) call();
      return { unref: () => undefined };
    }) as never);
    onTestFinished(() => timers.mockRestore());
    const delays: number[] = [];
    const token = vi.fn(() => Promise.reject(new Error('no token now')));
    const pool = new BrowserPool('pool', { baseUrl: 'http://127.0.0.1:1', token });
    // As `attachBrowser` does, which sends no request at first.
    const held = coreOf(pool).releases.hold('session-1', undefined);
    await settle();
    expect(delays).toEqual([0, 1000]);
    held.forget();
  });
});

it('a release that was repeated says how long, also if the network itself is wrong', async () => {
  useFakeClock();
  const core = coreOf(new BrowserPool('pool', { baseUrl: 'http://127.0.0.1:1', token: 'token' }));
  const facts = { isPermanent: true };
  const send = vi.spyOn(core.client, 'send');
  send.mockRejectedValue(new PoolConnectionError('No proxy.', 'ERR_POOL_UNREACHABLE', facts));
  const ticket = core.ticketOf('session-1', { pool: 'pool', id: 'mark', keepAlive: true, record: false });
  const pending = core.releases.hold('session-1', ticket);
  const releasing = pending.release({ reuse: false, timeout: 10_000 }).catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(11_000);
  expect(String(await releasing)).toContain('could not be released within 10 s: No proxy.');
  expect(send.mock.calls.length).toBeGreaterThan(1);
});
