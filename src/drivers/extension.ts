import type { CdpClient } from '../wire/cdp-client.js';
import type { OpenCdp } from '../wire/forms.js';
import type { LayerStack } from '../wire/layer.js';
import type { Sessions } from '../wire/sessions.js';
import type { WaitingTargets } from '../wire/waiting-targets.js';

export type { OpenCdp } from '../wire/forms.js';

/** A connection that is being opened, for what will run beside the library. */
export interface Opening {
  /** What all clients of the browser share. */
  readonly shared: {
    /** Adds layers between all clients and the browser. */
    readonly stack: LayerStack;
    readonly sessions: Sessions;
    /** The new pages, frames and workers. */
    readonly waiting: WaitingTargets;
  };
  /** Our client of the library's connection. */
  readonly own: CdpClient;
  /** Opens a further WebSocket to the browser. */
  readonly openCdp: OpenCdp;
  readonly library: UsedLibrary;
  /** False if the browser may run on this machine. */
  readonly isElsewhere: boolean;
  /** Resolves when all that runs beside the library was created. What limits the browser does so from then on. */
  readonly extended: Promise<void>;
  /** Ends the connection, which can't be used any longer. */
  readonly onLost: () => void;
  /** Aborts when the connect is abandoned, or when the connection has ended, and the pages that are limited have, too. */
  readonly signal: AbortSignal;
}

/** The automation library of a connection. */
interface UsedLibrary {
  readonly name: string;
  /** The files of the library can be followed over CDP. */
  readonly sharesFiles: boolean;
  readonly savesDownloads: boolean;
  /** The automation library's own connect options. */
  readonly connectOptions: object;
}

/** What runs beside the connection of the library, over WebSockets of its own. */
export interface ConnectExtension {
  /** The library has connected. Called with its browser before it has a page for the callback, by a library that can. */
  useBrowser?(browser: object | undefined): Promise<void>;
  /** Adds what to do to the message of an error of the library, whose text does not mention the lease. */
  explain?(error: unknown): void;
  /** Ends before the browser is cleaned: afterwards, no response to a request of the lease may arrive. */
  stop?(): Promise<void>;
  /** Closes the pages that it limits. Resolves when none of them runs any longer; rejects if one may still run. */
  end?(): Promise<void>;
}
