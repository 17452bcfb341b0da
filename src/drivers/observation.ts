import type { OnCall } from '../noted-calls/noted-calls.js';

/** How `LibraryConnection.openUrl` opens a URL. */
export interface OpenUrlOptions {
  /** Milliseconds. */
  readonly timeout: number;
  /** A page that shows something stays as it is: the service has opened it. */
  readonly onlyIfBlank?: boolean;
}

/** What a connector receives to observe pages. */
export interface ObserveRequest<Handles = unknown> {
  /** The handle that `scope` names, and others. Its `page`, if there is one, is observed from the beginning. */
  readonly handles: Partial<Handles>;
  /** Which new pages are observed: those of the whole browser, of one context, or the pop-ups of one page. */
  readonly scope: 'browser' | 'context' | 'page';
  /** Receives what the pages report. Without it, only the pages themselves are of interest. */
  readonly onReport?: ((report: PageReport) => void) | undefined;
  /** @internal Receives the calls of the library's objects in `scope`. */
  readonly onCall?: OnCall | undefined;
}

/** A console message, an error or a failed request of a page. */
export interface PageReport {
  /** A failed request got no response, or a response with a status of 400 or more. */
  readonly type: 'console' | 'page-error' | 'request-failed';
  /** URL of the page. */
  readonly page: string;
  /** The level of a console message, as the library names it: `log`, `error`, … */
  readonly level?: string;
  /** The console message, or the error with its stack. */
  readonly text?: string;
  /** URL of the script that wrote the console message, or of the request. */
  readonly url?: string;
  /** Line in the script, from 1. */
  readonly line?: number;
  /** HTTP method of the request. */
  readonly method?: string;
  /** HTTP status of the response. */
  readonly status?: number;
  /** Why the request got no response. */
  readonly reason?: string;
}

/** The observation of pages, until `stop`. */
export interface Observation {
  /**
   * Returns a function for each observed page that is open. The function takes a screenshot of the whole page, as a PNG.
   * They are called one after the other, because a screenshot may need its page in front.
   */
  screenshots(): (() => Promise<Uint8Array>)[];
  /** Removes the listeners. */
  stop(): void;
  /** The trace; only a library that records traces has it. */
  readonly trace?: {
    /** Begins to record the context of `handles`. */
    start(): Promise<unknown>;
    /** Ends the trace, and writes it to a file if there is a path. */
    stop(path?: string): Promise<unknown>;
  };
}
