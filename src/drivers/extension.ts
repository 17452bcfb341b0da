import { allSettled } from '../shared/abort.js';
import type { CdpClient } from '../wire/cdp-client.js';
import type { Sessions } from '../wire/sessions.js';
import type { PageStarts } from '../wire/page-starts.js';
import type { Stack } from '../wire/stack.js';
import type { OpenCdp, SocketEnd } from '../wire/forms.js';

/** What a feature of a lease adds to each of its connects. */
export interface ConnectAddition {
  /** Creates what runs beside the connection of the library. */
  readonly extend?: (opening: Opening) => Promise<ConnectExtension | undefined>;
  /** Adds what to do to the message of an error of the library, which does not know of the lease. */
  readonly explain?: (error: unknown, browser: { isElsewhere: boolean }) => void;
}

/** A connection that is being opened. */
export interface Opening {
  /** Opens a further WebSocket to the browser. */
  readonly openCdp: OpenCdp;
  /** Of all clients. */
  readonly layers: Stack;
  /** Who waits for new pages. */
  readonly starts: PageStarts;
  /** All sessions and targets of the browser. */
  readonly sessions: Sessions;
  /** Our client of the library's connection. */
  readonly own: CdpClient;
  /** What the library does with files. */
  readonly library: { readonly sharesFiles: boolean; readonly savesDownloads: boolean };
  /** The session has a CDP URL. */
  readonly hasCdp: boolean;
  /** False if the browser may run on this machine. */
  readonly isElsewhere: boolean;
  readonly ended: Promise<SocketEnd>;
  readonly detached: Promise<unknown>;
  /** The automation library's own connect options. */
  readonly connectOptions: object;
  /** Ends the connection, which can't be used any longer. */
  readonly onLost: () => void;
  /** Aborts when the connect is given up. */
  readonly signal: AbortSignal;
}

/** What runs beside the connection of the library, over WebSockets of its own. */
export interface ConnectExtension {
  /** Id of the context that stands for the browser's own one, for all clients. */
  readonly ownContext?: string | undefined;
  /** Called with the browser of the automation library, before it has a page for the callback. */
  useBrowser?(library: string, browser: object): Promise<void>;
  /** Begins, while the library connects. */
  open?(signal: AbortSignal): Promise<void>;
  /** The library has connected. @param ownContext See above, of any feature. */
  connected?(ownContext: string | undefined): Promise<void>;
  /** Ends before the browser is cleaned: afterwards, no response to a request of the lease may arrive. */
  stop?(): Promise<void>;
  /** Closes the pages that it limits. Resolves when none of them runs any longer; rejects if one may still run. */
  end?(): Promise<void>;
  /** The connection has ended, and so have the pages. */
  cut?(): void;
}

export class Extensions {
  #all: readonly ConnectExtension[] = [];

  async create(additions: readonly ConnectAddition[], opening: Opening): Promise<void> {
    const creating = await Promise.allSettled(additions.map(async ({ extend }) => extend?.(opening)));
    // If one fails, the others are cut with the connection.
    this.#all = creating.flatMap((one) => (one.status === 'fulfilled' ? (one.value ?? []) : []));
    const failed = creating.find((one) => one.status === 'rejected');
    if (failed) throw failed.reason;
  }

  get ownContext(): string | undefined {
    return this.#all.find(({ ownContext }) => ownContext !== undefined)?.ownContext;
  }

  async useBrowser(library: string, browser: object): Promise<void> {
    await Promise.all(this.#all.map(async (one) => one.useBrowser?.(library, browser)));
  }

  async open(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#all.map(async (one) => one.open?.(signal)));
  }

  async connected(): Promise<void> {
    await Promise.all(this.#all.map(async (one) => one.connected?.(this.ownContext)));
  }

  async stop(): Promise<void> {
    await allSettled(this.#all.map(async (one) => one.stop?.()));
  }

  async end(): Promise<void> {
    await allSettled(this.#all.map(async (one) => one.end?.()));
  }

  cut(): void {
    for (const one of this.#all) one.cut?.();
  }
}
