import type { ResultOf } from '../wire/message.js';

/** Sends a CDP command to the browser or to one of its pages. */
type SendHistograms = (
  method: 'Browser.getHistograms',
  params: object,
) => Promise<ResultOf<'Browser.getHistograms'>>;

/** Requests of the whole browser since its start. */
interface RequestCount {
  readonly started: number;
  /** Number of those that may still have no response. A request that its page aborted is counted, too. */
  readonly open: number;
}

const KEEP_ALIVE = 'FetchKeepAlive.Requests2';
const DOWNLOADS = 'Download.Counts';
/** Chromium's numbers of the events of a download. */
const DOWNLOAD = { started: 5, completed: 6, cancelled: 7, interrupted: 9 };

/**
 * Makes the browser count one keepalive request, which a page sends to a port that browsers refuse before they connect. Chromium
 * has no statistics of what it has not counted yet: afterwards, missing ones mean that they have another name.
 */
export const COUNT_KEEP_ALIVE =
  "fetch('https://192.0.2.1:1/', { keepalive: true, mode: 'no-cors' }).catch(() => {})";
/** The same for a download, of a page whose context denies downloads: it ends with its context. */
export const COUNT_DOWNLOAD = `{
  const link = document.createElement('a');
  link.download = 'x';
  link.href = 'data:application/octet-stream,x';
  link.click();
}`;

/**
 * Counts the requests of `navigator.sendBeacon` and of `fetch` with `keepalive`, which can last longer than their page. After
 * the data of a site was cleared, the response of an open one can still set a cookie. No command ends these requests, and
 * only Chromium's own statistics show all of them. Resolves to undefined if Chromium has none.
 */
export async function countKeepAliveRequests(send: SendHistograms): Promise<RequestCount | undefined> {
  const { histograms } = await send('Browser.getHistograms', { query: KEEP_ALIVE });
  const count = (how: string) =>
    histograms.find(({ name }) => name === `${KEEP_ALIVE}.${how}.Browser`)?.count;
  const started = count('Started');
  if (started === undefined) return undefined;
  // A missing name of an end counts as no end: the browser is not clean then.
  return { started, open: started - (count('Succeeded') ?? 0) - (count('Failed') ?? 0) };
}

/**
 * Counts the downloads, also those whose response has not arrived. In a browser's own context they outlast their page. Resolves
 * to undefined if Chromium has no statistics of them.
 */
export async function countDownloads(send: SendHistograms): Promise<RequestCount | undefined> {
  const { histograms } = await send('Browser.getHistograms', { query: DOWNLOADS });
  const buckets = histograms.find(({ name }) => name === DOWNLOADS)?.buckets;
  const count = (event: number) => buckets?.find(({ low }) => low === event)?.count;
  const started = count(DOWNLOAD.started);
  if (started === undefined) return undefined;
  const { completed, cancelled, interrupted } = DOWNLOAD;
  const ended = [completed, cancelled, interrupted].reduce((sum, event) => sum + (count(event) ?? 0), 0);
  return { started, open: started - ended };
}
