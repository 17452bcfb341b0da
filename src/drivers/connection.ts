import type { BrowserState, CleanOptions } from '../clean/browser-state.js';
import type { SpareConnection } from '../net/spare-connection.js';
import type { Grant } from '../services/browser-service.js';
import type { Trust } from '../shared/network.js';
import type { SocketEnd } from '../wire/forms.js';
import type { LibraryConnection, Connector, ContextChoice, BrowserProtocol } from './connector.js';
import type { ConnectExtension, Opening } from './extension.js';

/** What a lease asks of this folder. */
export interface Drivers {
  /** Connects to a leased browser until a page is usable. After a failure no socket stays open. */
  connectSession<Handles>(
    connector: Connector<Handles>,
    grant: Grant,
    plan: ConnectPlan,
  ): Promise<OpenConnection<Handles>>;
  /**
   * Removes what an earlier lease left in a browser that nothing could destroy.
   *
   * @throws ConnectError; the signal's reason.
   */
  cleanSession(grant: Grant, how: CleanPlan, clean: CleanOptions): Promise<void>;
  /**
   * Opens a URL in the first page of a browser, over CDP.
   *
   * @throws If it can't be loaded. The page is blank then: the browser's error page would interrupt the next navigation.
   */
  openUrl(grant: Grant, how: Pick<ConnectPlan, 'trust' | 'signal'>, url: string): Promise<void>;
}

/** Loads what connects: while the acquire request waits, with the automation library. */
export type LoadDrivers = () => Promise<Drivers>;

export interface ConnectPlan {
  /** The options of the lease. */
  readonly settings: {
    readonly protocol: BrowserProtocol;
    readonly context: ContextChoice;
    readonly contextOptions?: object | undefined;
    readonly connectOptions: object;
    readonly connectTimeout: number;
  };
  /** Decides which WebSocket URLs are allowed. */
  readonly trust: Trust;
  /** A connection that may be open already. */
  readonly spare: SpareConnection;
  readonly pageUrl: string | undefined;
  readonly signal: AbortSignal;
  /** Called with the URLs of unresponsive pages that were closed. */
  readonly onPagesClosed: (urls: string[]) => void;
  /** Called with the name of an event of the browser that can't be read, and was dropped. */
  readonly onMalformed?: (name: string) => void;
  /** The state in which the lease leaves the browser. */
  readonly state: BrowserState;
  /** Creates what runs beside the library. */
  readonly extend: (opening: Opening) => readonly Promise<ConnectExtension | undefined>[];
}

/** A plan for the cleaning of a browser to which no library is connected. */
export type CleanPlan = Pick<ConnectPlan, 'settings' | 'trust' | 'signal'>;

/** A connection with the socket that carries it. */
export interface OpenConnection<Handles> extends LibraryConnection<Handles> {
  /** Resolves when the socket has ended, with the first reason. */
  readonly ended: Promise<SocketEnd>;
  /** Closes the socket immediately: no further command reaches the browser. What limits the pages stays until they have ended. */
  cut(): void;
  /**
   * Closes the pages that a feature limits. Resolves when none of them runs any longer.
   *
   * @throws If one may still run.
   */
  endPages(): Promise<void>;
  /**
   * Takes the browser from the library, and removes everything that the lease left there.
   *
   * @throws If something may be left.
   */
  clean(how: CleanOptions): Promise<void>;
  /** Takes the browser from the library, which receives nothing more: `cleanup` asks it for nothing then. */
  takeOver(): void;
  /** Makes the methods of the library's objects fail. @param toError Returns the error of the lease for an error of the library. */
  endHandles(this: void, handles: Iterable<object>, toError: (cause: unknown) => Error): void;
  /** The socket that carries it. */
  readonly socket: { readonly methodsInFlight: readonly string[]; readonly isDetached: boolean };
}
