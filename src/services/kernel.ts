import * as v from 'valibot';
import { isRecord } from '../shared/json.js';
import {
  LEASE_TAG,
  MARK_TAG,
  type BrowserService,
  type LeaseRequest,
  type SessionFields,
} from './browser-service.js';
import { path } from './service-json.js';
import { proxyAs } from './session-fields.js';
import type { AcquireRequest, BrowserSession, PoolConfig, Telemetry } from './kernel-api.js';

/**
 * A session id can belong to one lease after another, so a tag shows whose lease it is. A lease that already has the maximum
 * number of tags has no such tag, and is recognized by its name.
 */
const MOST_TAGS = 50;
const hasTagCapacity = ({ tags = {} }: LeaseRequest, more = 1) =>
  Object.keys(tags).length + more <= MOST_TAGS;
/** Sessions of one request for the list. */
const PAGE = 100;

/** Settings of the service of the given API. */
export interface KernelOptions {
  /** Id of the project of the pool. Default: the project of the token. */
  projectId?: string | undefined;
  /**
   * Telemetry of each lease. `true`: what the service records by default; `false`: none; or by category, on top of the pool's.
   * Default: the pool's.
   */
  telemetry?: boolean | Telemetry | undefined;
  /**
   * Creates a browser for each lease, instead of leasing one from a pool: fields of that request, by their names there. Only such a
   * browser can save a profile (`profile: { name, save_changes: true }`). The name of the pool is then a label of this library.
   */
  create?: KernelCreate | undefined;
}

/** Fields of the request that creates a browser. The name, the tags and the first URL are those of the lease. */
export interface KernelCreate {
  /** The profile to load, by its id or name, and whether it is saved when the session ends. */
  profile?: { id?: string; name?: string; save_changes?: boolean } | undefined;
  /** Seconds without a connection after which the service ends the session, 10 to 259,200. Default: the service's, 60. */
  timeout_seconds?: number | undefined;
  /** Hides from web pages that a program drives the browser. */
  stealth?: boolean | undefined;
  /** Runs headless, without live view and recordings. */
  headless?: boolean | undefined;
  /** Size of the window in pixels, and frames per second. */
  viewport?: { width: number; height: number; refresh_rate?: number } | undefined;
  /** Id of a proxy that is stored at the service. */
  proxy_id?: string | undefined;
  /** Extensions to load, each by its id or name. */
  extensions?: readonly { id?: string; name?: string }[] | undefined;
  /** Policies of Chrome, by their names. */
  chrome_policy?: Readonly<Record<string, unknown>> | undefined;
  /** Uses a graphics processor. */
  gpu?: boolean | undefined;
  /** Hides the address bar and the tabs. */
  kiosk_mode?: boolean | undefined;
  /** Further fields of the request. */
  readonly [field: string]: unknown;
}

/** The service of the given API; a call returns it with other settings. */
export interface KernelService extends BrowserService<BrowserSession> {
  (options?: KernelOptions): BrowserService<BrowserSession>;
}

const SERVICE: BrowserService<BrowserSession> = {
  name: 'kernel',
  baseUrl: 'https://api.onkernel.com',
  usualToken: { variables: ['KERNEL_API_KEY'], at: 'https://api.onkernel.com' },
  secretParameters: ['jwt'],
  idField: 'session_id',
  waits: 'asked',
  sessionOptions: 'the pool decides it: set it in the configuration of the pool',
  acquire: (lease) => {
    const body: AcquireRequest = { acquire_timeout_seconds: lease.wait, ...labelsOf(lease) };
    return { method: 'POST', path: path`/browser_pools/${lease.pool}/acquire`, body };
  },
  grant: (json) => {
    const session: BrowserSession = read(sessionSchema, json, 'is not a JSON object');
    return {
      id: session.session_id,
      session,
      // Empty for a browser without CDP.
      cdpUrl: session.cdp_ws_url === '' ? undefined : session.cdp_ws_url,
      bidiUrl: session.webdriver_ws_url,
      liveViewUrl: session.browser_live_view_url,
      name: session.name,
      hasProfile: session.profile !== undefined,
      idleTimeout: session.timeout_seconds * 1000,
    };
  },
  release: (id, { pool, reuse }) => ({
    method: 'POST',
    path: path`/browser_pools/${pool}/release`,
    body: { session_id: id, reuse },
  }),
  owner: (id, lease) => {
    const read = { method: 'GET', path: path`/browsers/${id}` } as const;
    if (hasTagCapacity(lease)) return { ...read, at: ['tags', LEASE_TAG], is: lease.id };
    return lease.name === undefined ? null : { ...read, at: ['name'], is: lease.name };
  },
  find: (lease) =>
    hasTagCapacity(lease)
      ? {
          method: 'GET',
          path: path`/browsers?tags[${LEASE_TAG}]=${lease.id}`,
          list: [],
          at: ['tags', LEASE_TAG],
          isWhole: true,
        }
      : undefined,
  replays: {
    // The link contains a JWT.
    access: 'public',
    list: (id) => ({ method: 'GET', path: path`/browsers/${id}/replays` }),
    read: (json) => read(v.array(replaySchema), json, 'is not a list of replays'),
    start: (id, { frameRate, maxSeconds }) => ({
      method: 'POST',
      path: path`/browsers/${id}/replays`,
      body: { framerate: frameRate, max_duration_in_seconds: maxSeconds },
    }),
    stop: (id, replay) => ({ method: 'POST', path: path`/browsers/${id}/replays/${replay}/stop` }),
    video: (id, replay) => ({ method: 'GET', path: path`/browsers/${id}/replays/${replay}` }),
  },
  sessions: {
    list: (_page, listed) => ({
      method: 'GET',
      path: path`/browsers?limit=${`${PAGE}`}&offset=${`${listed}`}`,
    }),
    read: (json) =>
      read(v.array(listedSchema), json, 'is not a list of sessions').map(
        ({ session_id: id, created_at: createdAt, name, tags = {}, pool = {} }) => ({
          id,
          lease: tags[LEASE_TAG],
          mark: tags[MARK_TAG],
          name,
          pool: pool.name ?? pool.id,
          poolId: pool.id,
          createdAt,
        }),
      ),
  },
  pool: {
    describe: (pool) => ({ method: 'GET', path: path`/browser_pools/${pool}` }),
    read: (json) => read(poolSchema, json, 'is not a JSON object'),
    flush: (pool) => ({ method: 'POST', path: path`/browser_pools/${pool}/flush` }),
  },
};

/** Creates a browser for each lease. Without `owner`, no browser is leased again. */
function creating(create: KernelCreate): BrowserService<BrowserSession> {
  const { owner: _owner, pool: _pool, ...rest } = SERVICE;
  return {
    ...rest,
    name: 'kernel:browsers',
    waits: 'never',
    sessionOptions: OF_CREATED,
    acquire: (lease) => ({
      method: 'POST',
      path: '/browsers',
      body: { ...create, ...labelsOf(lease) },
    }),
    // The answer comes when the profile is saved.
    release: (id) => ({ method: 'DELETE', path: path`/browsers/${id}` }),
    probe: { method: 'GET', path: '/browsers?limit=1' },
  };
}

const OF_CREATED: SessionFields = {
  viewport: (viewport) => ({ viewport }),
  stealth: (stealth) => ({ stealth }),
  timeout:
    'it ends a session after a time without a connection: pass kernel({ create: { timeout_seconds } })',
  profile: (profile) => {
    const { id, name, save } = typeof profile === 'string' ? { name: profile } : profile;
    const isNamed = id !== undefined || name !== undefined;
    return isNamed
      ? { profile: { id, name, save_changes: save } }
      : 'it knows profiles by their ids or names';
  },
  proxy: proxyAs({ none: { proxy_id: undefined }, id: (id) => ({ proxy_id: id }) }),
};

/** What a request says about its lease. */
function labelsOf(lease: LeaseRequest): Pick<AcquireRequest, 'name' | 'start_url' | 'tags'> {
  const { id, mark, name, tags, startUrl } = lease;
  return {
    name,
    start_url: startUrl,
    tags: {
      ...tags,
      ...(hasTagCapacity(lease) && { [LEASE_TAG]: id }),
      ...(mark !== undefined && hasTagCapacity(lease, 2) && { [MARK_TAG]: mark }),
    },
  };
}

function withOptions({ projectId, telemetry, create }: KernelOptions = {}): BrowserService<BrowserSession> {
  const asked = typeof telemetry === 'boolean' ? { enabled: telemetry } : telemetry;
  const service = create ? creating(create) : SERVICE;
  const acquire: typeof SERVICE.acquire = (lease) => {
    const request = service.acquire(lease)!;
    return { ...request, body: { ...request.body, telemetry: asked } };
  };
  return {
    ...service,
    ...(asked && { acquire }),
    ...(projectId !== undefined && { headers: { 'x-kernel-project-id': projectId } }),
  };
}

/**
 * The service of the given API, and every service with the same one: kernel.sh, by the types of `@onkernel/sdk` 0.84.0. It is the
 * default. `kernel` itself is the service without settings: `service: kernel`, `service: { ...kernel, release }`,
 * `service: kernel({ projectId })`. `kernel({ create })` needs no pool.
 */
export const kernel: KernelService = Object.defineProperties(
  withOptions,
  Object.getOwnPropertyDescriptors(SERVICE),
) as KernelService;

/** An optional field. A wrong value counts as missing, so that it does not fail a lease. */
const lenient = <Field extends v.GenericSchema>(field: Field) => v.fallback(v.optional(field), undefined);
const text = lenient(v.string());
const record = v.custom<Readonly<Record<string, unknown>>>(isRecord);
const texts = v.pipe(
  record,
  v.transform((given) =>
    Object.fromEntries(
      Object.entries(given).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
    ),
  ),
);

const replaySchema = object({
  replay_id: text,
  started_at: text,
  finished_at: text,
  replay_view_url: text,
});

const sessionSchema = object({
  session_id: v.string(),
  created_at: v.string(),
  cdp_ws_url: v.string(),
  webdriver_ws_url: v.string(),
  headless: v.boolean(),
  stealth: v.boolean(),
  timeout_seconds: v.number(),
  browser_live_view_url: text,
  base_url: text,
  gpu: lenient(v.boolean()),
  name: text,
  profile: lenient(object({ id: text, name: text, created_at: text, updated_at: text, last_used_at: text })),
  proxy_id: text,
  pool: lenient(object({ id: text, name: text })),
  viewport: lenient(object({ width: v.number(), height: v.number(), refresh_rate: lenient(v.number()) })),
  kiosk_mode: lenient(v.boolean()),
  start_url: text,
  chrome_policy: lenient(record),
  tags: lenient(texts),
  deleted_at: text,
  usage: lenient(object({ uptime_ms: lenient(v.number()) })),
  telemetry: lenient(v.custom<Telemetry | null>((value) => value === null || isRecord(value))),
});

const listedSchema = object({
  session_id: v.string(),
  created_at: text,
  name: text,
  tags: lenient(texts),
  pool: lenient(object({ id: text, name: text })),
});

const poolSchema = object({
  id: v.string(),
  name: text,
  available_count: lenient(v.number()),
  acquired_count: lenient(v.number()),
  created_at: text,
  browser_pool_config: lenient(v.custom<PoolConfig>(isRecord)),
});

/** Reads a value. Throws with the reason why the JSON is not one. */
function read<T>(schema: v.GenericSchema<unknown, T>, json: unknown, fault: string): T {
  const result = v.safeParse(schema, json, { abortEarly: true });
  if (result.success) return result.output;
  const [issue] = result.issues;
  const field = v.getDotPath(issue);
  if (field === null || Array.isArray(json)) throw new Error(fault);
  if (issue.input === undefined || issue.input === null) throw new Error(`lacks the required field ${field}`);
  throw new Error(`has a field ${field} that is not a ${issue.expected}`);
}

/** The object without missing fields, and with its unknown fields. */
type Found<Fields> = {
  readonly [Name in keyof Fields as undefined extends Fields[Name] ? never : Name]: Fields[Name];
} & {
  readonly [Name in keyof Fields as undefined extends Fields[Name] ? Name : never]?: Exclude<
    Fields[Name],
    undefined
  >;
} & { readonly [field: string]: unknown };

type Known<Fields extends v.ObjectEntries> = v.InferOutput<v.ObjectSchema<Fields, undefined>>;

function object<Fields extends v.ObjectEntries>(fields: Fields) {
  const known = v.looseObject(fields as Record<string, v.GenericSchema>);
  const withoutMissing = (all: object) =>
    Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
  return v.pipe(v.custom<object>(isRecord), known, v.transform(withoutMissing)) as unknown as v.GenericSchema<
    unknown,
    Found<Known<Fields>>
  >;
}
