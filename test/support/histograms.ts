/** Chromium's statistics of a browser that has had one download and one keepalive request, which have ended. */
export const HISTOGRAMS = [
  ...['Started', 'Succeeded'].map((how) => ({
    name: `FetchKeepAlive.Requests2.${how}.Browser`,
    count: 1,
    buckets: [],
  })),
  {
    name: 'Download.Counts',
    count: 2,
    buckets: [
      { low: 5, count: 1 },
      { low: 6, count: 1 },
    ],
  },
];
