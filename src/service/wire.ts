import * as v from 'valibot';
import { isRecord } from '../shared/json.js';

/**
 * The objects of the API (API: Resources and their fields), under their own names. Unknown fields are kept. Required
 * fields are checked; an optional field that is `null` or of a wrong type counts as missing.
 */

declare const TYPE: unique symbol;

/** One field: its type and its check. The comment above each entry is its public documentation. */
export interface WireField<T> {
  readonly [TYPE]?: () => T;
}

type WireFields = Readonly<Record<string, WireField<unknown>>>;
type TypeOf<F> = F extends WireField<infer T> ? T : never;

/** The object with these fields: those whose type includes `undefined` are optional. */
export type WireObject<F> = {
  readonly [Name in keyof F as undefined extends TypeOf<F[Name]> ? never : Name]: TypeOf<F[Name]>;
} & {
  readonly [Name in keyof F as undefined extends TypeOf<F[Name]> ? Name : never]?: Exclude<
    TypeOf<F[Name]>,
    undefined
  >;
};

const profile = {
  /** Identifier. */
  id: optional(v.string()),
  /** Name. */
  name: optional(v.string()),
  /** Time of the creation, ISO 8601. */
  created_at: optional(v.string()),
  /** Time of the last change, ISO 8601. */
  updated_at: optional(v.string()),
  /** Time of the last use, ISO 8601. */
  last_used_at: optional(v.string()),
};

/** Browser profile of a session (API: Profile). */
export interface Profile extends WireObject<typeof profile> {}

const viewport = {
  /** Width in pixels. */
  width: required(v.number()),
  /** Height in pixels. */
  height: required(v.number()),
  /** Frames per second; the service derives it from the size if it is missing. */
  refresh_rate: optional(v.number()),
};

/** Window size (API: Viewport). */
export interface Viewport extends WireObject<typeof viewport> {}

const poolReference = {
  /** Identifier. */
  id: optional(v.string()),
  /** Name. */
  name: optional(v.string()),
};

const usage = {
  /** Milliseconds since the browser started. */
  uptime_ms: optional(v.number()),
};

/** The categories of telemetry (API: Telemetry shape). */
export type TelemetryCategory =
  | 'console'
  | 'page'
  | 'interaction'
  | 'network'
  | 'control'
  | 'connection'
  | 'system'
  | 'screenshot'
  | 'captcha';

/** Which telemetry is enabled (API: Telemetry shape). */
export interface Telemetry {
  /** By category. A missing category is off. */
  readonly browser?: Readonly<Partial<Record<TelemetryCategory, TelemetrySwitch>>>;
}

/** @inline */
interface TelemetrySwitch {
  /** Events of this category are recorded. */
  readonly enabled: boolean;
}

const sessionFields = {
  /** Identifier of the session. A browser that is leased again keeps it. Required. */
  session_id: required(v.string()),
  /** When the session was created, ISO 8601, by the service's clock. Required. */
  created_at: required(v.string()),
  /** WebSocket URL for the Chrome DevTools Protocol; contains a JWT. Required. */
  cdp_ws_url: required(v.string()),
  /** WebSocket URL for WebDriver BiDi; contains a JWT. Required. */
  webdriver_ws_url: required(v.string()),
  /** The browser runs headless. Required. */
  headless: required(v.boolean()),
  /** The browser runs in stealth mode. Required. */
  stealth: required(v.boolean()),
  /** Seconds of inactivity after which the service ends the session. Required. */
  timeout_seconds: required(v.number()),
  /** URL of the live view; contains a JWT. Only for browsers that are not headless. */
  browser_live_view_url: optional(v.string()),
  /** HTTP base URL of the session's own control API. */
  base_url: optional(v.string()),
  /** GPU acceleration is enabled (only for browsers that are not headless). */
  gpu: optional(v.boolean()),
  /** Name of this lease. */
  name: optional(v.string()),
  /** The browser profile, with cookies and logins. */
  profile: optional(object<Profile>(profile)),
  /** Identifier of the proxy. */
  proxy_id: optional(v.string()),
  /** The pool of the session. */
  pool: optional(object<WireObject<typeof poolReference>>(poolReference)),
  /** Initial window size. */
  viewport: optional(object<Viewport>(viewport)),
  /** The browser runs in kiosk mode. */
  kiosk_mode: optional(v.boolean()),
  /** The URL of the acquire request; it may not have loaded. */
  start_url: optional(v.string()),
  /** Chrome enterprise policies, by policy name. */
  chrome_policy: optional(v.custom<Readonly<Record<string, unknown>>>(isRecord)),
  /** Tags of this lease. */
  tags: optional(stringRecord()),
  /** When the session was soft-deleted, ISO 8601. Only for deleted sessions. */
  deleted_at: optional(v.string()),
  /** Resources that the session used. */
  usage: optional(object<WireObject<typeof usage>>(usage)),
  /** Active telemetry, or `null` for none. */
  telemetry: optional(v.custom<Telemetry | null>((value) => value === null || isRecord(value))),
};

/** A leased browser (API: Browser session). `util.inspect` and JSON show its URLs without their JWTs. */
export interface BrowserSession extends WireObject<typeof sessionFields> {
  /** Fields that this version of the library does not know. */
  readonly [field: string]: unknown;
}

const replayFields = {
  /** Identifier. */
  replay_id: optional(v.string()),
  /** Start of the recording, ISO 8601, by the service's clock. */
  started_at: optional(v.string()),
  /** End of the recording, ISO 8601; missing while it is running or being written. */
  finished_at: optional(v.string()),
  /** URL of the page that shows the recording. It contains a JWT, and may be shown to people. */
  replay_view_url: optional(v.string()),
};

/** A recording of a session (API: Replay). No field is required. */
export interface Replay extends WireObject<typeof replayFields> {
  /** Fields that this version of the library does not know. */
  readonly [field: string]: unknown;
}

/** Configuration of a pool (extension). */
export interface PoolConfig {
  /** Number of browsers. */
  readonly size?: number;
  /** Percent of `size` that the service refills per minute. */
  readonly fill_rate_per_minute?: number;
  /** Seconds of inactivity after which a leased browser is destroyed. */
  readonly timeout_seconds?: number;
  /** The browsers run headless. */
  readonly headless?: boolean;
  /** The browsers run in stealth mode. */
  readonly stealth?: boolean;
  /** Initial window size. */
  readonly viewport?: Viewport;
  /** URL that the browsers open. */
  readonly start_url?: string;
  readonly [field: string]: unknown;
}

const poolFields = {
  /** Identifier. */
  id: required(v.string()),
  /** Name. */
  name: optional(v.string()),
  /** Number of idle browsers. */
  available_count: optional(v.number()),
  /** Number of leased browsers. */
  acquired_count: optional(v.number()),
  /** Time of the creation, ISO 8601. */
  created_at: optional(v.string()),
  /** Configuration of the pool. */
  browser_pool_config: optional(v.custom<PoolConfig>(isRecord)),
};

/** The record of a pool (extension: the API shows only `id` and `name`). */
export interface PoolRecord extends WireObject<typeof poolFields> {
  readonly [field: string]: unknown;
}

export const sessionSchema: WireField<object> = required(object<object>(sessionFields));
export const replaySchema: WireField<object> = required(object<object>(replayFields));
export const poolSchema: WireField<object> = required(object<object>(poolFields));

/**
 * Reads an object of the API.
 *
 * @returns The object, or the reason why the JSON is not one, as the end of a sentence that begins with "The response".
 */
export function readWire(
  schema: WireField<object>,
  json: unknown,
): { value: Record<string, unknown> } | string {
  const result = v.safeParse(schema as v.GenericSchema, json, { abortEarly: true });
  if (result.success) return { value: result.output as Record<string, unknown> };
  const [issue] = result.issues;
  const field = v.getDotPath(issue);
  if (field === null) return 'is not a JSON object';
  if (issue.input === undefined || issue.input === null) return `lacks the required field ${field}`;
  return `has a field ${field} that is not a ${issue.expected}`;
}

function required<S extends v.GenericSchema>(schema: S): WireField<v.InferOutput<S>> {
  return schema as WireField<v.InferOutput<S>>;
}

/** An optional field. A wrong value counts as missing, so that it does not fail a lease. */
function optional<S extends v.GenericSchema>(schema: S): WireField<v.InferOutput<S> | undefined> {
  return v.fallback(v.optional(schema), undefined) as WireField<v.InferOutput<S> | undefined>;
}

function object<T>(fields: WireFields): v.GenericSchema<unknown, T> {
  const known = v.looseObject(fields as Record<string, v.GenericSchema>);
  const schema = v.pipe(v.custom<object>(isRecord), known, v.transform(withoutUndefined));
  return schema as unknown as v.GenericSchema<unknown, T>;
}

function stringRecord(): v.GenericSchema<unknown, Readonly<Record<string, string>>> {
  const isText = ([, value]: [string, unknown]) => typeof value === 'string';
  const strings = (record: object) => Object.fromEntries(Object.entries(record).filter(isText));
  return v.pipe(v.custom<object>(isRecord), v.transform(strings));
}

function withoutUndefined(record: object): object {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined));
}
