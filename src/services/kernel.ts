import * as v from 'valibot';
import { isRecord } from '../shared/json.js';
import { LEASE_TAG, MARK_TAG, type BrowserService, type LeaseRequest } from './browser-service.js';
import { path } from './service-json.js';
import type { AcquireRequest, BrowserSession, PoolConfig, Telemetry } from './kernel-api.js';

/**
 * A session id can belong to one lease after another, so a tag shows whose lease it is. A lease that already has the maximum
 * number of tags has no such tag, and is recognized by its name.
 */
const MOST_TAGS = 50;
const hasRoom = ({ tags = {} }: LeaseRequest, more = 1) => Object.keys(tags).length + more <= MOST_TAGS;
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
  acquire: (lease) => {
    const { pool, id, mark, name, tags, startUrl, wait } = lease;
    const body: AcquireRequest = {
      acquire_timeout_seconds: wait,
      name,
      start_url: startUrl,
      tags: {
        ...tags,
        ...(hasRoom(lease) && { [LEASE_TAG]: id }),
        ...(mark !== undefined && hasRoom(lease, 2) && { [MARK_TAG]: mark }),
      },
    };
    return { method: 'POST', path: path`/browser_pools/${pool}/acquire`, body };
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
    if (hasRoom(lease)) return { ...read, at: ['tags', LEASE_TAG], is: lease.id };
    return lease.name === undefined ? null : { ...read, at: ['name'], is: lease.name };
  },
  find: (lease) =>
    hasRoom(lease)
      ? {
          method: 'GET',
          path: path`/browsers?tags[${LEASE_TAG}]=${lease.id}`,
          list: [],
          at: ['tags', LEASE_TAG],
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

function withOptions({ projectId, telemetry }: KernelOptions = {}): BrowserService<BrowserSession> {
  const asked = typeof telemetry === 'boolean' ? { enabled: telemetry } : telemetry;
  const acquire: typeof SERVICE.acquire = (lease) => {
    const request = SERVICE.acquire(lease)!;
    return { ...request, body: { ...request.body, telemetry: asked } };
  };
  return {
    ...SERVICE,
    ...(asked && { acquire }),
    ...(projectId !== undefined && { headers: { 'x-kernel-project-id': projectId } }),
  };
}

/**
 * The service of the given API, and every service with the same one: kernel.sh, by the types of @onkernel/sdk 0.84.0. It is the
 * default. `kernel` itself is the service without settings: `service: kernel`, `service: { ...kernel, release }`,
 * `service: kernel({ projectId })`.
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
