import type { Film, TimelineEntry } from '../replays/local-replay.js';

/** What pages and server say to each other. The scripts of the pages import these types, and nothing else from outside. */

/** `writing`: it has ended, its film is not there yet. `none`: it has ended without a film. */
export type ReplayState = 'recording' | 'writing' | 'ready' | 'none';

/** A recording, as its page shows it. */
export interface ReplayFacts {
  readonly state: ReplayState;
  readonly replayId: string;
  readonly sessionId: string;
  readonly pool: string;
  readonly leaseName?: string;
  readonly startedAt: string;
  readonly finishedAt?: string;
  readonly failure?: string;
  readonly film?: Omit<Film, 'path'>;
  readonly timeline: readonly TimelineEntry[];
}

/** A page of a browser that is watched. */
export interface LiveTab {
  readonly id: string;
  readonly title: string;
  readonly url: string;
}

/** The pages of a browser that is watched. */
export interface LiveTabs {
  readonly tabs: readonly LiveTab[];
  /** Id of the one that is shown. */
  readonly current: string | undefined;
}

/** What the viewer of a live view may do. */
export interface LiveMode {
  readonly readOnly: boolean;
  /** Where the viewer may change to: from control to watching, and back. Missing for those who never may do more. */
  readonly otherUrl?: string;
}

/** From the server to the live view. Besides these there are binary messages: each is one picture, a JPEG. */
export type LiveMessage =
  /** Comes first. */
  | ({ readonly type: 'mode' } & LiveMode)
  | ({ readonly type: 'tabs' } & LiveTabs)
  /** Size of the page in CSS pixels, in which positions of the mouse are given. Comes before the first picture. */
  | { readonly type: 'size'; readonly width: number; readonly height: number };

/** From the live view to the server. Who only watches may send `watch`, and nothing else. */
export type LiveCommand =
  | { readonly type: 'watch'; readonly id: string }
  | MouseCommand
  | WheelCommand
  | KeyCommand
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'navigate'; readonly url: string }
  | { readonly type: 'history'; readonly by: -1 | 1 }
  | { readonly type: 'reload' };

export interface MouseCommand {
  readonly type: 'mouse';
  readonly action: 'mousePressed' | 'mouseReleased' | 'mouseMoved';
  readonly x: number;
  readonly y: number;
  readonly button: 'none' | 'left' | 'middle' | 'right' | 'back' | 'forward';
  /** Which are held, as in `MouseEvent.buttons`. */
  readonly buttons: number;
  readonly clickCount: number;
  /** Alt 1, Control 2, Meta 4, Shift 8. */
  readonly modifiers: number;
}

export interface WheelCommand {
  readonly type: 'wheel';
  readonly x: number;
  readonly y: number;
  readonly deltaX: number;
  readonly deltaY: number;
  readonly modifiers: number;
}

export interface KeyCommand {
  readonly type: 'key';
  readonly action: 'keyDown' | 'keyUp';
  readonly key: string;
  readonly code: string;
  readonly keyCode: number;
  /** What the key types; empty when it types nothing. */
  readonly text: string;
  readonly location: number;
  readonly repeat: boolean;
  readonly modifiers: number;
}

/** All that the dashboard shows. */
export interface DashboardState {
  readonly pools: readonly PoolState[];
  /** The latest first. */
  readonly replays: readonly ReplayRow[];
}

export interface PoolState {
  readonly id: string;
  readonly name: string;
  readonly size: number;
  readonly headless: boolean;
  readonly starting: number;
  /** Totals since the start. */
  readonly totals: { readonly granted: number; readonly destroyed: number; readonly expired: number };
  readonly browsers: readonly BrowserRow[];
  readonly waiting: readonly WaitingRow[];
}

/** An acquire request without a browser. */
export interface WaitingRow extends Aged {
  readonly state: 'waiting';
  readonly leaseName?: string;
}

/** How long something is as it is. */
interface Aged {
  /** In milliseconds, at the time of the message. */
  readonly age: number;
  /** By the server's own clock: it differs when the same state was left and taken up again. */
  readonly since: number;
}

export interface BrowserRow extends Aged {
  readonly sessionId: string;
  readonly state: 'idle' | 'leased';
  readonly leaseName?: string;
  readonly tags?: Readonly<Record<string, string>>;
  readonly connections: number;
  readonly live?: LiveLinks;
}

/** The live view of a browser: only to see it, and to drive it. */
export interface LiveLinks {
  readonly watchUrl: string;
  readonly controlUrl: string;
}

export interface ReplayRow {
  readonly replayId: string;
  readonly sessionId: string;
  readonly pool: string;
  readonly leaseName?: string;
  readonly startedAt: string;
  readonly state: ReplayState;
  /** In milliseconds. */
  readonly duration?: number;
  readonly viewUrl: string;
}
