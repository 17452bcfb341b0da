/**
 * The resources as they travel (interface: Resources and their fields).
 * Names are the wire's own; fields that this library does not know are kept as they came.
 * A field marked "required" is checked on arrival; any other may be missing, and `null` counts as missing.
 */

/** A leased browser (interface: Browser session). `inspect` and JSON of it show URLs without their jwts. */
export interface BrowserSession {
  /** When the session was created, ISO 8601. Required. By the service's clock: never compare it with yours. */
  readonly created_at: string;
  /** Websocket URL for the Chrome DevTools Protocol; carries a jwt. Required. */
  readonly cdp_ws_url: string;
  /** Websocket URL for WebDriver BiDi; carries a jwt. Required. */
  readonly webdriver_ws_url: string;
  /** The browser runs headless. Required. */
  readonly headless: boolean;
  /** The browser runs in stealth mode. Required. */
  readonly stealth: boolean;
  /** Identifier of the session. A browser that is leased again keeps it. Required. */
  readonly session_id: string;
  /** Seconds of inactivity before the session is terminated. Required. */
  readonly timeout_seconds: number;
  /** URL for watching live; carries a jwt. Only for browsers that are not headless. */
  readonly browser_live_view_url?: string;
  /** HTTP base URL of the session's own control API. */
  readonly base_url?: string;
  /** GPU acceleration is on (headful sessions only). */
  readonly gpu?: boolean;
  /** Name of this lease, if one was set. */
  readonly name?: string;
  readonly profile?: Profile;
  /** Identifier of the proxy in use, if any. */
  readonly proxy_id?: string;
  /** The pool that the session was acquired from. */
  readonly pool?: { readonly id?: string; readonly name?: string };
  /** Initial window size. */
  readonly viewport?: Viewport;
  /** The browser runs in kiosk mode. */
  readonly kiosk_mode?: boolean;
  /** URL that the session was asked to open: the request, not what was loaded. */
  readonly start_url?: string;
  /** Chrome enterprise policies applied, by policy name. */
  readonly chrome_policy?: Readonly<Record<string, unknown>>;
  /** Key-value tags of this lease. */
  readonly tags?: Readonly<Record<string, string>>;
  /** When the session was soft-deleted, ISO 8601. Only for deleted sessions. */
  readonly deleted_at?: string;
  /** Usage so far. */
  readonly usage?: { readonly uptime_ms?: number };
  /** Active telemetry, or `null` for none. */
  readonly telemetry?: Telemetry | null;
  /** Fields newer than this library. */
  readonly [field: string]: unknown;
}

/** Browser profile of a session (interface: Profile). None is required. */
export interface Profile {
  readonly id?: string;
  readonly name?: string;
  /** ISO 8601. */
  readonly created_at?: string;
  /** ISO 8601. */
  readonly updated_at?: string;
  /** ISO 8601. */
  readonly last_used_at?: string;
}

/** Window size (interface: Viewport). */
export interface Viewport {
  /** Pixels. */
  readonly width: number;
  /** Pixels. */
  readonly height: number;
  /** Frames per second; chosen from the size when missing. */
  readonly refresh_rate?: number;
}

/** The nine categories of telemetry (interface: Telemetry shape). */
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

/** Which telemetry is on (interface: Telemetry shape). */
export interface Telemetry {
  readonly browser?: { readonly [category in TelemetryCategory]?: { readonly enabled: boolean } };
}

/** A recording of a session (interface: Replay). None of its fields is required. */
export interface Replay {
  readonly replay_id?: string;
  /** ISO 8601, by the service's clock. */
  readonly started_at?: string;
  /** ISO 8601; missing while it is being recorded or written. */
  readonly finished_at?: string;
  /** Where a person can watch it; carries a jwt, and is meant to be shown. */
  readonly replay_view_url?: string;
  /** Fields newer than this library. */
  readonly [field: string]: unknown;
}

/** Body of a request to start a recording (beyond the given interface). Every field is optional. */
export interface ReplayRequest {
  /** Frames per second. Default: the service's. */
  framerate?: number | undefined;
  /** Whole seconds after which the recording ends by itself. Default: the service's. */
  max_duration_in_seconds?: number | undefined;
}

/** A pool (beyond the given interface: only `id` and `name` are shown there). */
export interface PoolRecord {
  readonly id: string;
  readonly name?: string;
  /** Idle browsers. */
  readonly available_count?: number;
  /** Leased browsers. */
  readonly acquired_count?: number;
  /** ISO 8601. */
  readonly created_at?: string;
  readonly browser_pool_config?: {
    /** Browsers in the pool. */
    readonly size?: number;
    /** Percent of `size` that is filled again per minute. */
    readonly fill_rate_per_minute?: number;
    /** Seconds of inactivity before a leased browser is destroyed. */
    readonly timeout_seconds?: number;
    readonly headless?: boolean;
    readonly stealth?: boolean;
    readonly viewport?: Viewport;
    readonly start_url?: string;
    readonly [field: string]: unknown;
  };
  readonly [field: string]: unknown;
}

/** Body of an acquire request (interface: endpoint 2). Every field is optional. */
export interface AcquireRequest {
  /** Whole seconds to wait for a browser. Default: the service's, which can be minutes. */
  acquire_timeout_seconds?: number | undefined;
  /** Name of the lease: 1 to 255 of letters, digits, `.`, `_`, `-`; unique among the active ones. */
  name?: string | undefined;
  /** Up to 50 key-value pairs. */
  tags?: Readonly<Record<string, string>> | undefined;
  /** URL to open; a failure to load it does not fail the acquire. */
  start_url?: string | undefined;
}

/** Body of a release request (beyond the given interface). */
export interface ReleaseRequest {
  session_id: string;
  /** `true`: back to the pool as it is; `false`: destroyed. Default: `true`. */
  reuse?: boolean;
}
