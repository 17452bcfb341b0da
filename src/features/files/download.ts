/** A download of the browser, as far as it is known. */
export interface BrowserDownload {
  readonly guid: string;
  readonly url: string;
  readonly suggestedFilename: string;
  /** The page that started it. Undefined if that is not known. */
  page: DownloadPage | undefined;
  /** Bytes so far, and in total; 0 if the server did not send the size. */
  received: number;
  total: number;
}

/** The page that started a download. */
export interface DownloadPage {
  /** The id of the page, and those of the pages that opened it. */
  readonly ids: readonly string[];
  readonly contextId: string | undefined;
}

/** Receives the downloads of a browser. */
export interface DownloadListener {
  /** Largest file in bytes. */
  readonly maxSize: number;
  begun(download: BrowserDownload): void;
  /** @param copied Bytes that were copied from the browser's machine; undefined while the browser receives the file. */
  progressed(download: BrowserDownload, copied?: number): void;
  /**
   * The file is on this machine.
   *
   * @param mustStay Somebody else also uses the file: it must stay at its path.
   */
  arrived(download: BrowserDownload, path: string, mustStay: boolean): Promise<void>;
  failed(download: BrowserDownload, error: Error): void;
}
