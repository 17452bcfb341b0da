/** A leased browser of this service. `util.inspect` and JSON show its URLs without their JWTs. */
export interface BrowserSession {
  /** Identifier of the session. A browser that is leased again keeps it. */
  readonly session_id: string;
  /** When the session was created, ISO 8601, by the service's clock. */
  readonly created_at: string;
  /** WebSocket URL for the Chrome DevTools Protocol; contains a JWT. Empty for a browser without CDP. */
  readonly cdp_ws_url: string;
  /** WebSocket URL for WebDriver BiDi; contains a JWT. */
  readonly webdriver_ws_url: string;
  /** The browser runs headless. */
  readonly headless: boolean;
  /** The browser runs in stealth mode. */
  readonly stealth: boolean;
  /** Seconds of inactivity after which the service ends the session. */
  readonly timeout_seconds: number;
  /** URL of the live view; contains a JWT. Only for browsers that are not headless. */
  readonly browser_live_view_url?: string;
  /** HTTP base URL of the session's own control API. */
  readonly base_url?: string;
  /** GPU acceleration is enabled (only for browsers that are not headless). */
  readonly gpu?: boolean;
  /** Name of this lease. */
  readonly name?: string;
  /** The browser profile, with cookies and logins. */
  readonly profile?: Profile;
  /** Identifier of the proxy. */
  readonly proxy_id?: string;
  /** The pool of the session. */
  readonly pool?: { readonly id?: string; readonly name?: string };
  /** Initial window size. */
  readonly viewport?: BrowserViewport;
  /** The browser runs in kiosk mode. */
  readonly kiosk_mode?: boolean;
  /** The URL of the acquire request; it may not have loaded. */
  readonly start_url?: string;
  /** Chrome enterprise policies, by policy name. */
  readonly chrome_policy?: Readonly<Record<string, unknown>>;
  /** Tags of this lease. */
  readonly tags?: Readonly<Record<string, string>>;
  /** When the session was soft-deleted, ISO 8601. Only deleted sessions have it. */
  readonly deleted_at?: string;
  /** Resources that the session used: milliseconds since the browser started. */
  readonly usage?: { readonly uptime_ms?: number };
  /** Active telemetry, or `null` for none. */
  readonly telemetry?: Telemetry | null;
  /** Fields that this version of the library does not know. */
  readonly [field: string]: unknown;
}

/** Browser profile of a session. */
export interface Profile {
  /** Identifier. */
  readonly id?: string;
  /** Name. */
  readonly name?: string;
  /** Time of the creation, ISO 8601. */
  readonly created_at?: string;
  /** Time of the last change, ISO 8601. */
  readonly updated_at?: string;
  /** Time of the last use, ISO 8601. */
  readonly last_used_at?: string;
}

/** Window size. */
export interface BrowserViewport {
  /** Width in pixels. */
  readonly width: number;
  /** Height in pixels. */
  readonly height: number;
  /** Frames per second; the service derives it from the size if it is missing. */
  readonly refresh_rate?: number;
}

/** The categories of telemetry. */
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

/** Which telemetry is enabled, by category. A missing category is off. */
export interface Telemetry {
  /** By category. */
  readonly browser?: Readonly<Partial<Record<TelemetryCategory, { readonly enabled: boolean }>>>;
}

/** Body of an acquire request. */
export interface AcquireRequest {
  /** Seconds to wait for a browser, a whole number. Default: the service's, which can be minutes. */
  acquire_timeout_seconds?: number | undefined;
  /** Name of the lease: 1 to 255 letters, digits, `.`, `_` or `-`; unique among the active leases. */
  name?: string | undefined;
  /** Up to 50 key-value pairs. */
  tags?: Readonly<Record<string, string>> | undefined;
  /** URL to open. If it fails to load, the acquire request succeeds anyway. */
  start_url?: string | undefined;
}

/** The record of a pool. */
export interface PoolRecord {
  /** Identifier. */
  readonly id: string;
  /** Name. */
  readonly name?: string;
  /** Number of idle browsers. */
  readonly available_count?: number;
  /** Number of leased browsers. */
  readonly acquired_count?: number;
  /** Time of the creation, ISO 8601. */
  readonly created_at?: string;
  /** Configuration of the pool. */
  readonly browser_pool_config?: PoolConfig;
  readonly [field: string]: unknown;
}

/** Configuration of a pool. */
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
  readonly viewport?: BrowserViewport;
  /** URL that the browsers open. */
  readonly start_url?: string;
  readonly [field: string]: unknown;
}
