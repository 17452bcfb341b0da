import { afterEach, beforeEach, describe, expect } from 'vitest';
import {
  BrowserPool,
  InvalidOptionError,
  ReleaseError,
  withPooledBrowser,
  type RunOptions,
} from '../../src/index.js';
import { FakeService, reply, session, type Answer } from '../support/fake-service.js';
import { plainConnector } from '../support/plain-connector.js';
import { PlayedBrowser } from '../support/played-browser.js';
import { expectNoSecrets } from '../support/collected.js';
import { hang, it, reset } from './support.js';

let browser: PlayedBrowser;

beforeEach(async () => {
  browser = await PlayedBrowser.start();
});

afterEach(() => browser[Symbol.asyncDispose]());

interface Answers {
  release: Answer[];
  /** Answers to the check of the ownership. */
  session?: Answer[];
  /** Further fields of the leased session. The service shows the tags of the lease unless they are `undefined` here. */
  grant?: object;
}

/** Runs a callback, and releases its browser at a service with these answers. */
async function release(answers: Answers, options: RunOptions = {}, token?: () => string) {
  const service = await FakeService.start();
  await using pool = new BrowserPool('pool', { ...service.options, ...(token && { token }) });
  const urls = { cdp_ws_url: browser.url, webdriver_ws_url: browser.url };
  service.script('acquire', { status: 200, json: session({ ...urls, ...answers.grant }) });
  service.script('release', ...answers.release);
  if (answers.session)
    service.script(
      'session',
      ...answers.session.map((answer): Answer => (answer === OURS ? ours(service) : answer)),
    );
  const settings = { release: 'reuse', releaseTimeout: 120_000, replays: 'off', ...options } as const;
  const run = await withPooledBrowser(pool, () => 'value', { connector: plainConnector, ...settings });
  await service.close();
  expect(run.value).toBe('value');
  const { released, cleanupErrors } = run;
  const releases = service.of('release').map(({ body }) => body);
  return { released, cleanupErrors, releases, checks: service.of('session').length };
}

/** Stands for the record of the session with name and tags of our lease. */
const OURS: Answer = { status: 200 };
const ours = (service: FakeService) => (response: Parameters<typeof reply>[0]) =>
  reply(response, { status: 200, json: service.leaseOf('session-1') });
const NO_TAGS = { tags: undefined };

it('repeats a release for destruction until the service confirms it, without a check of the ownership', async () => {
  const failures = [{ status: 500 }, { status: 503, headers: { 'retry-after': '0' } }, reset];
  const outcome = await release({ release: [...failures, { status: 204 }] }, { release: 'destroy' });
  expect(outcome).toMatchObject({ released: 'destroyed', cleanupErrors: [], checks: 0 });
  expect(outcome.releases).toStrictEqual(
    Array.from({ length: 4 }, () => ({ session_id: 'session-1', reuse: false })),
  );
});

it('counts a 404 as released: the session no longer exists', async () => {
  const gone = { status: 404, json: { code: 'not_found', message: 'gone' } };
  const outcome = await release({ release: [gone] });
  expect(outcome).toMatchObject({ released: 'destroyed', cleanupErrors: [] });
  expect(outcome.releases).toStrictEqual([{ session_id: 'session-1', reuse: true }]);
});

it('fails immediately after a 403, which is permanent, and says why', async () => {
  const json = { code: 'forbidden', message: 'The key is read-only' };
  const { released, cleanupErrors, releases } = await release({ release: [{ status: 403, json }] });
  expect(released).toBe('failed');
  expect(cleanupErrors[0]).toBeInstanceOf(ReleaseError);
  const facts = { code: 'ERR_RELEASE', sessionId: 'session-1', pool: 'pool', cause: { status: 403 } };
  expect(cleanupErrors).toMatchObject([facts]);
  expect((cleanupErrors[0] as Error).message).toMatch(
    /^Session session-1 of pool pool could not be released: 403 forbidden: The key is read-only\. .* stays leased/,
  );
  expect(releases).toHaveLength(1);
});

it('fails immediately for a token that is never sent', async () => {
  const tokens = ['canary-token', ''];
  const options = { releaseTimeout: 200_000 };
  const outcome = await release({ release: [] }, options, () => tokens.shift() ?? '');
  expect(outcome).toMatchObject({ released: 'failed', releases: [] });
  expect((outcome.cleanupErrors[0] as Error).cause).toBeInstanceOf(InvalidOptionError);
});

it.for<[string, Answer, string, RegExp]>([
  ['always refuses', { status: 503, text: 'down' }, 'failed', /within 500 ms: 503 http_503: down\./],
  ['never answers', hang, 'unknown', /unknown whether .* was released: .* no complete response/],
])('fails at its deadline if the service %s, and names the session', async ([, answer, how, why]) => {
  const { released, cleanupErrors } = await release({ release: [answer] }, { releaseTimeout: 500 });
  expect(released).toBe(how);
  const [error] = cleanupErrors as [Error];
  expect(error).toBeInstanceOf(ReleaseError);
  expect(error.message).toMatch(/session-1.*stays leased/s);
  expect(error.message).toMatch(why);
  expect(error.cause).toBeInstanceOf(Error);
  expectNoSecrets(error);
});

describe('a release for reuse whose outcome is unknown', () => {
  const record = (fields: object): Answer => ({ status: 200, json: session({ ...fields }) });
  const THEIRS = [record({}), record({ tags: { 'pooled-browser-lease': 'theirs' } })];
  const DONE: Answer = { status: 204 };
  /** The result, the number of release requests, and the number of checks. */
  async function outcomeOf(answers: Answers, options?: RunOptions): Promise<unknown[]> {
    const { released, releases, checks } = await release(answers, options);
    return [released, releases.length, checks];
  }

  it('is repeated only if the session still has the tag of the lease', async () => {
    expect(await outcomeOf({ release: [reset, DONE], session: [OURS] })).toEqual(['reused', 2, 1]);
    for (const theirs of THEIRS)
      expect(await outcomeOf({ release: [reset], session: [theirs] })).toEqual(['reused', 1, 1]);
    expect(await outcomeOf({ release: [reset], session: [{ status: 404 }] })).toEqual(['unknown', 1, 1]);
  });

  it('is repeated after a check that failed at first', async () => {
    const failures = [{ status: 401 }, reset, { status: 200, text: '' }];
    const answers = { release: [reset, DONE], session: [...failures, OURS] };
    expect(await outcomeOf(answers)).toEqual(['reused', 2, 4]);
  });

  it('is unknown, without a check, if the service showed no mark with the lease', async () => {
    expect(await outcomeOf({ release: [reset], grant: NO_TAGS })).toEqual(['unknown', 1, 0]);
    expect(await outcomeOf({ release: [{ status: 500 }, DONE], grant: NO_TAGS })).toEqual(['reused', 2, 0]);
  });

  it('recognizes a lease with the maximum number of tags by its name, and not without a name', async () => {
    const tags = Object.fromEntries(Array.from({ length: 50 }, (_tag, index) => [`t${index}`, 'v']));
    const session = [record({ name: 'ours' }), record({})];
    const named = { name: 'ours', tags };
    expect(await outcomeOf({ release: [reset, reset, DONE], session }, named)).toEqual(['reused', 2, 2]);
    expect(await outcomeOf({ release: [reset] }, { tags })).toEqual(['unknown', 1, 0]);
  });

  it('of a broken response is repeated only if the session shows the tag', async ({ service, pool }) => {
    service.script('acquire', { status: 200, json: session({ created_at: null }) });
    const events: object[] = [];
    const acquire = () => pool.acquire({}, { onEvent: (event) => events.push(event) }).catch(() => {});
    service.script('release', reset, DONE);
    await acquire();
    await expect.poll(() => events.at(-1)).toMatchObject({ type: 'released', released: 'reused' });
    service.script('release', { status: 500 });
    service.script('session', record({}));
    await acquire();
    await pool.close();
    expect(events.at(-1)).toMatchObject({ type: 'release-failed', error: { released: 'unknown' } });
    expect(service.released).toHaveLength(3);
  });
});
