/** Sends a CDP command to the browser or to one of its pages. */
type Send = (method: string, params: object) => Promise<unknown>;

/** The requests of the whole browser that can last longer than their page, since the start of the browser. */
export interface LastingRequests {
  readonly started: number;
  /** Number of those that may still have no response. A request that its page aborted is counted, too. */
  readonly open: number;
}

interface Histogram {
  readonly name: string;
  readonly count: number;
  readonly buckets: readonly { readonly low: number; readonly count: number }[];
}

const KEEP_ALIVE = 'FetchKeepAlive.Requests2';
const DOWNLOADS = 'Download.Counts';
/** Chromium's numbers of the events of a download. */
const DOWNLOAD = { started: 5, completed: 6, cancelled: 7, interrupted: 9 };

/**
 * Counts the requests of `navigator.sendBeacon`, of `fetch` with `keepalive`, and of downloads. After the data of a site was
 * cleared, the response of an open one can still set a cookie. No command ends these requests, and only Chromium's own
 * statistics show all of them.
 */
export async function countLastingRequests(send: Send): Promise<LastingRequests> {
  const read = async (query: string) =>
    ((await send('Browser.getHistograms', { query })) as { histograms: readonly Histogram[] }).histograms;
  const [keepAlive, downloads] = await Promise.all([read(KEEP_ALIVE), read(DOWNLOADS)]);
  const requests = (how: string) =>
    keepAlive.find(({ name }) => name === `${KEEP_ALIVE}.${how}.Browser`)?.count ?? 0;
  const files = (event: number) =>
    downloads.find(({ name }) => name === DOWNLOADS)?.buckets.find(({ low }) => low === event)?.count ?? 0;
  const started = requests('Started') + files(DOWNLOAD.started);
  const ended =
    requests('Succeeded') +
    requests('Failed') +
    files(DOWNLOAD.completed) +
    files(DOWNLOAD.cancelled) +
    files(DOWNLOAD.interrupted);
  return { started, open: started - ended };
}
