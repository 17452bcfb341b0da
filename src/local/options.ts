import type { TelemetryCategory } from '../service/wire.js';
import type { LocalPoolEvent } from './events.js';

/** Options of `startLocalPool`. All are optional: without any there is one pool, `default`, of one headless browser. */
export interface LocalPoolOptions {
  /** The pools to hold. Default: one, named `default`. */
  pools?: readonly LocalPoolSettings[] | undefined;
  /** TCP port on 127.0.0.1. Default: 0, any free one. */
  port?: number | undefined;
  /** The access token that clients must send, 8 characters or more. Default: a random one, see `LocalPool.token`. */
  token?: string | undefined;
  /** Path of a Chrome or Chromium. Default: what `findBrowser` finds. */
  executablePath?: string | undefined;
  /** Further Chromium flags, each beginning with `--`. */
  args?: readonly string[] | undefined;
  /** Behaviour on which services differ, so that a client can be tried against each. */
  quirks?: LocalPoolQuirks | undefined;
  /** Limits of recordings, and where they are kept. */
  recording?: LocalPoolRecording | undefined;
  /** Called with each step. It never sees a token; an error that it throws is ignored. */
  onLog?: ((event: LocalPoolEvent) => void) | undefined;
}

/** One pool. */
export interface LocalPoolSettings {
  /** Its name: 1 to 255 of letters, digits, `.`, `_`, `-`. Default: `default`. */
  name?: string | undefined;
  /** Its id, under the same rules. Default: a random one. */
  id?: string | undefined;
  /** Browsers to hold. Default: 1. */
  size?: number | undefined;
  /** Run without windows. Default: true. */
  headless?: boolean | undefined;
  /** Seconds that a leased browser may be without a connection before it is destroyed. Default: 60. */
  timeoutSeconds?: number | undefined;
  /**
   * Percent of `size` that is refilled per minute; each new browser then waits for its turn.
   * Default: none, a destroyed browser is replaced at once. The first fill never waits.
   */
  fillRatePerMinute?: number | undefined;
  /** URL that each new browser opens. Default: `about:blank`. */
  startUrl?: string | undefined;
  /** Size of the window. Default: the browser's own. */
  viewport?: LocalPoolViewport | undefined;
  /**
   * Telemetry that the sessions declare (interface: Telemetry shape); it decides what the timelines of recordings hold.
   * Default: none is declared, and timelines hold console, page, interaction, network and connection.
   */
  telemetry?: LocalPoolTelemetry | undefined;
  /** Record every lease, from its grant. Default: false, recordings are asked for. */
  recordAll?: boolean | undefined;
}

/** Which of the nine categories are enabled. Default of each: false. */
export type LocalPoolTelemetry = { [category in TelemetryCategory]?: boolean | undefined };

/** Recordings: how large they may grow, and how long they stay. Beyond the given interface. */
export interface LocalPoolRecording {
  /**
   * Folder, which must exist, to leave the films in; one that is not whole yet ends in `.part`. Default: a temporary one
   * that is removed when the pool closes.
   */
  folder?: string | undefined;
  /** Bytes of frames after which a recording ends; the film until then is kept. Default: 512 MB. */
  maxBytes?: number | undefined;
  /**
   * Bytes of all recordings together, with the room that is kept for films to come: the oldest films are removed to stay
   * below. Default: 2 GB.
   */
  maxTotalBytes?: number | undefined;
  /** Finished recordings to keep; the oldest are removed. Default: 100. */
  keep?: number | undefined;
}

/** Size of the browser's window, in pixels. */
export interface LocalPoolViewport {
  width: number;
  height: number;
}

/** Where the interface is silent, services may differ. Each switch makes this one behave like such a service. */
export interface LocalPoolQuirks {
  /** Status of an acquire whose wait elapsed. Default: 204 with an empty body; the others carry an Error body. */
  unavailableStatus?: 204 | 408 | 409 | 429 | 503 | 504 | undefined;
  /** Answer an acquire at once when no browser is idle, whatever wait it asks for. Default: false. */
  answersAtOnce?: boolean | undefined;
  /** Status of an acquire whose name an active lease has. Default: 409. */
  nameConflictStatus?: 409 | 422 | undefined;
  /** A browser that is leased again keeps its `session_id`. Default: true. */
  keepsSessionId?: boolean | undefined;
  /**
   * `new`: a BiDi websocket begins with `session.new`. `existing`: the session exists already, and
   * `session.new` is refused with "session not created". Default: `new`.
   */
  bidiSession?: 'new' | 'existing' | undefined;
  /** Headless sessions, too, have a `browser_live_view_url`. Default: false. */
  liveViewsHeadless?: boolean | undefined;
  /** Headless browsers can be recorded. With `false` that is refused, as the public service does. Default: true. */
  recordsHeadless?: boolean | undefined;
}
