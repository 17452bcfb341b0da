/** Sends a CDP command to the browser or to one of its pages. */
type Send = (method: string, params: object) => Promise<unknown>;

/** Requests of the whole browser since its start. */
export interface RequestCount {
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
 * Counts the requests of `navigator.sendBeacon` and of `fetch` with `keepalive`, which can last longer than their page. After
 * the data of a site was cleared, the response of an open one can still set a cookie. No command ends these requests, and
 * only Chromium's own statistics show all of them.
 */
export async function countKeepAliveRequests(send: Send): Promise<RequestCount> {
  const histograms = await read(send, KEEP_ALIVE);
  const count = (how: string) =>
    histograms.find(({ name }) => name === `${KEEP_ALIVE}.${how}.Browser`)?.count ?? 0;
  const started = count('Started');
  return { started, open: started - count('Succeeded') - count('Failed') };
}

/** Counts the downloads, also those whose response has not arrived. In a browser's own context they outlast their page. */
export async function countDownloads(send: Send): Promise<RequestCount> {
  const buckets = (await read(send, DOWNLOADS)).find(({ name }) => name === DOWNLOADS)?.buckets;
  const count = (event: number) => buckets?.find(({ low }) => low === event)?.count ?? 0;
  const started = count(DOWNLOAD.started);
  const ended = count(DOWNLOAD.completed) + count(DOWNLOAD.cancelled) + count(DOWNLOAD.interrupted);
  return { started, open: started - ended };
}

async function read(send: Send, query: string): Promise<readonly Histogram[]> {
  const { histograms } = (await send('Browser.getHistograms', { query })) as { histograms: Histogram[] };
  return histograms;
}
