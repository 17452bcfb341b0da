import { createFeatures, type PooledLease } from '../../features/create-features.js';
import type { SavedLifetime } from '../../features/lifetime/lifetime.js';
import type { LeaseFeature } from '../../lease/feature.js';
import type { HeldBrowser } from '../../lease/held-browser.js';
import type { DetachedState } from '../../lease/plan.js';
import type { PoolList } from '../../pool/browser-pool.js';
import { findSession, isFindable } from '../../pool/find-session.js';
import { coreOf, type PoolCore } from '../../pool/pool-core.js';
import type { LeaseRequest } from '../../services/browser-service.js';
import { allSettled } from '../../shared/abort.js';
import { clock, LONGEST_TIMER, startTimer } from '../../shared/clock.js';
import { duration, InvalidOptionError } from '../../shared/errors.js';
import { ConnectError, LeaseExpiredError } from '../../shared/lease-errors.js';
import type { AllSettings, ProxySettings } from '../options.js';
import { KeepFile, type KeptBrowser } from './keep-file.js';

/** The part of a lease that is noted in the file. */
export type NotedLease = Pick<PooledLease<unknown>, 'context' | 'features'> & {
  readonly browser: Pick<HeldBrowser<object>, 'detachedState'>;
};

/** A browser of an earlier proxy, at its service. */
interface FoundBrowser<Session extends object> {
  readonly pool: PoolCore<Session>;
  readonly detachedState: DetachedState<Session>;
}

/** What became of the browser of a name, which an earlier proxy has leased. `why` follows "The one before it". */
export type KeptOutcome<Lease> =
  { readonly kept: 'found'; readonly lease: Lease } | { readonly kept: 'gone'; readonly why: string };

interface KeepPlan<Session extends object> {
  readonly pools: readonly PoolCore<Session>[];
  readonly settings: AllSettings<Session> & Pick<ProxySettings, 'keep' | 'share'>;
}

/** The longest name of a path: the names of browsers share the limits of tags with the tags of the options. */
const LONGEST_NAME = 'x'.repeat(64);

/**
 * What is left in a browser of an earlier proxy. Nobody knows, because that proxy may have been killed: the browser is destroyed when it
 * is released.
 */
const UNKNOWN_LEFT: DetachedState['left'] = {
  hasHttpLogin: true,
  hasChangedWindow: true,
  mayBeReused: false,
  permanent: [],
  extensions: [],
  contexts: [],
};

/**
 * The option `keepFile`: the browsers with a name that outlive a proxy. A later proxy with the same file finds each when a client of its
 * name comes. If none comes within `keep`, or before the end of the lifetime, the browser is released.
 */
export class KeptBrowsers<Session extends object = object> {
  readonly #plan: KeepPlan<Session>;
  readonly #file: KeepFile;
  /** Those of earlier proxies to which no client has come yet, with the timers of their release, by the ids of their leases. */
  readonly #waiting = new Map<string, { browser: KeptBrowser; timer: NodeJS.Timeout | undefined }>();
  readonly #releasing = new Set<Promise<void>>();
  /** Why those whose lifetime ended without a client were released, by their names, until a client comes. */
  readonly #expired = new Map<string, string>();

  /** @throws InvalidOptionError if the file can't be used, or if the other options don't allow it. Nothing is sent. */
  static async open<Session extends object>(
    pools: PoolList<Session>,
    settings: KeepPlan<Session>['settings'] & { readonly keepFile: string },
  ): Promise<KeptBrowsers<Session>> {
    const plan = { pools: pools.map((pool) => coreOf(pool)), settings };
    await expectKeepable(plan);
    const file = await KeepFile.open(settings.keepFile, (browser) => faultOf(browser, plan.pools));
    return new KeptBrowsers(plan, file);
  }

  private constructor(plan: KeepPlan<Session>, file: KeepFile) {
    this.#plan = plan;
    this.#file = file;
    for (const browser of file.browsers) this.#wait(browser);
  }

  /**
   * Continues the lease of the browser of a name. Resolves to undefined if there is none, or no client came for it within `keep`.
   *
   * @throws What the request to the service throws, and the reason of the signal: the browser waits for the next client.
   */
  async find<Lease>(
    name: string,
    signal: AbortSignal | undefined,
    attach: (found: FoundBrowser<Session>) => Promise<Lease>,
  ): Promise<KeptOutcome<Lease> | undefined> {
    const waiting = [...this.#waiting.values()].findLast(({ browser }) => browser.name === name);
    const expired = this.#expired.get(name);
    this.#expired.delete(name);
    if (!waiting) return expired === undefined ? undefined : { kept: 'gone', why: expired };
    const { browser } = waiting;
    this.#take(browser);
    try {
      const found = await this.#search(browser, signal);
      if (found) return { kept: 'found', lease: await attach(found) };
      await this.#file.remove(browser.lease);
      return { kept: 'gone', why: 'has ended at the service while no proxy used it' };
    } catch (error) {
      if (signal?.aborted || !isUnusable(error)) {
        this.#wait(browser);
        throw error;
      }
      await this.#release(browser);
      const isExpired = error instanceof LeaseExpiredError;
      return { kept: 'gone', why: isExpired ? expiredAfter(error.lifetime) : 'could no longer be reached' };
    }
  }

  /** Notes a browser with a name, or its new end. Never rejects: a browser that is not noted is released with the proxy. */
  async note(name: string, { browser, context, features }: NotedLease): Promise<void> {
    const { lease } = browser.detachedState;
    const { pool, sessionId, grant, addError } = context;
    const { saved } = features.lifetime;
    if (!saved || grant.endsWithConnection || !isFindable(pool.service, lease)) return;
    const facts = { name, sessionId, lease: lease.id, pool: pool.idOrName, service: pool.service.name };
    await this.#file.set({ ...facts, ...datesOf(saved) }).catch(addError);
  }

  /** Whether a browser outlives this proxy. */
  has({ browser }: NotedLease): boolean {
    return this.#file.has(browser.detachedState.lease.id);
  }

  /** The lease has ended. */
  remove({ browser }: NotedLease): Promise<void> {
    return this.#file.remove(browser.detachedState.lease.id);
  }

  async close(): Promise<void> {
    for (const { browser } of this.#waiting.values()) this.#take(browser);
    await allSettled([...this.#releasing]);
    await this.#file.close();
  }

  #wait(browser: KeptBrowser): void {
    const left = Date.parse(browser.endsAt) - Date.now();
    const time = Math.max(0, Math.min(this.#plan.settings.keep, left, LONGEST_TIMER));
    const timer = startTimer(time, () => {
      this.#take(browser);
      const { lifetime } = savedIn(browser);
      if (left <= time) this.#expired.set(browser.name, expiredAfter(lifetime));
      const releasing = this.#release(browser);
      this.#releasing.add(releasing);
      void releasing.then(() => this.#releasing.delete(releasing));
    });
    this.#waiting.set(browser.lease, { browser, timer });
  }

  #take({ lease }: KeptBrowser): void {
    clock.clearTimeout(this.#waiting.get(lease)?.timer);
    this.#waiting.delete(lease);
  }

  async #search(browser: KeptBrowser, signal?: AbortSignal): Promise<FoundBrowser<Session> | undefined> {
    const { pools, settings } = this.#plan;
    for (const pool of pools) {
      if (!isOf(browser, pool)) continue;
      const lease = requestOf(browser, settings);
      const grant = await findSession(pool, browser.sessionId, { lease, signal });
      if (!grant) continue;
      const features = { lifetime: savedIn(browser) };
      return { pool, detachedState: { grant, lease, isMarkShown: true, left: UNKNOWN_LEFT, features } };
    }
    return undefined;
  }

  /** Releases a browser for which no client came. Never rejects: a browser that could not be released stays in the file. */
  async #release(browser: KeptBrowser): Promise<void> {
    try {
      const found = await this.#search(browser);
      if (found) {
        const { pool, detachedState } = found;
        const ticket = pool.ticketOf(browser.sessionId, detachedState.lease, true);
        const pending = pool.releases.hold(browser.sessionId, ticket && { ...ticket, isShared: true });
        await pending.release({ reuse: false, timeout: this.#plan.settings.releaseTimeout });
      }
      await this.#file.remove(browser.lease);
    } catch {
      // The next proxy tries again, unless the service has ended the session by then.
    }
  }
}

/** @param lifetime In ms. */
export function expiredAfter(lifetime: number): string {
  return `was released after its lifetime of ${duration(lifetime)}`;
}

/** The browser is at its service, and can't be used any longer. A host that can't be reached now may be reached later. */
function isUnusable(error: unknown): boolean {
  return (
    error instanceof LeaseExpiredError || (error instanceof ConnectError && error.unreachedBy === undefined)
  );
}

/** @throws InvalidOptionError if browsers can't outlive a proxy with these options. */
async function expectKeepable<Session extends object>({ pools, settings }: KeepPlan<Session>): Promise<void> {
  const refuse = (reason: string) => {
    throw new InvalidOptionError('keepFile', reason);
  };
  if (settings.share)
    refuse('keepFile keeps browsers with a name, and with share all clients use one without.');
  if (settings.lifetime === Number.POSITIVE_INFINITY)
    refuse(
      'keepFile needs the option lifetime (--lifetime): nothing else would end a browser that no client uses again.',
    );
  const features: readonly (LeaseFeature | undefined)[] = Object.values(await createFeatures(settings));
  const noDetach = features.find((one) => one?.needs?.thisProcess !== undefined)?.needs?.thisProcess;
  if (noDetach !== undefined) refuse(`keepFile can't be used: ${noDetach}`);
  for (const { api, service, idOrName } of pools) {
    if (api.baseUrl.startsWith('local:'))
      refuse(
        `The browsers of the pool "${idOrName}" end with the process that uses them. Start a pool in a process of its own, pooled-browser serve ` +
          `--pool ${idOrName}=3, and set BROWSER_POOL_BASE_URL and BROWSER_POOL_ACCESS_TOKEN as it prints them.`,
      );
    const sample = { name: LONGEST_NAME, lease: 'id', pool: idOrName };
    if (!isFindable(service, requestOf(sample, settings)))
      refuse(
        `The service ${service.name} can't be asked for the browser of a lease and its URLs: remove keepFile. Services that can: ` +
          'kernel, and steel.',
      );
  }
}

function faultOf(browser: KeptBrowser, pools: readonly PoolCore[]): string | undefined {
  if (pools.some((pool) => isOf(browser, pool))) return undefined;
  const [name, pool, service] = [browser.name, browser.pool, browser.service].map((text) =>
    JSON.stringify(text),
  );
  return (
    `has the browser ${name} of the pool ${pool} at ${service}, which this proxy does not serve. Serve that pool, too, or name ` +
    'another file.'
  );
}

function isOf(browser: KeptBrowser, { idOrName, service }: PoolCore): boolean {
  return browser.pool === idOrName && browser.service === service.name;
}

/** What identifies the request that leased a browser. */
function requestOf(
  { name, lease, pool }: Pick<KeptBrowser, 'name' | 'lease' | 'pool'>,
  { tags }: Pick<AllSettings, 'tags'>,
): LeaseRequest {
  return { pool, id: lease, name, tags, keepAlive: true, record: false };
}

function datesOf({
  age,
  lifetime,
  maxLifetime,
  savedAt,
}: SavedLifetime): Pick<KeptBrowser, 'leasedAt' | 'endsAt' | 'latestEnd'> {
  const began = savedAt - age;
  const dateOf = (after: number) => new Date(Math.min(began + after, LATEST)).toISOString();
  const latest = maxLifetime === null ? {} : { latestEnd: dateOf(maxLifetime) };
  return { leasedAt: dateOf(0), endsAt: dateOf(lifetime), ...latest };
}

/** The last date of JavaScript. */
const LATEST = 8.64e15;

function savedIn({ leasedAt, endsAt, latestEnd }: KeptBrowser): SavedLifetime {
  const began = Date.parse(leasedAt);
  const savedAt = Date.now();
  const maxLifetime = latestEnd === undefined ? null : Date.parse(latestEnd) - began;
  return { age: Math.max(0, savedAt - began), lifetime: Date.parse(endsAt) - began, maxLifetime, savedAt };
}
