/** Guides, by the groups of options in the docstring of `RunOptions`. */
export const GUIDES: Readonly<Record<string, string>> = {
  'The five to begin with':
    '[replays](guides/replays.md), [log in once](guides/log-in-once.md), [the end of a lease](guides/release.md)',
  'The wait for a browser': '[several services](guides/several-services.md)',
  'The lease and its session':
    '[session options at each service](guides/several-services.md#options-that-mean-the-same-everywhere), [an end for each lease](guides/agent-runtimes.md#an-end-for-each-lease)',
  'What pages reach': '[your localhost](localhost/README.md), [allowed hosts](allowed-hosts/README.md)',
  'Recordings, files and events':
    '[replays](guides/replays.md), [downloads](guides/downloads.md), [artifacts](../src/features/artifacts/README.md)',
};

/** The types of the options that are objects. */
export const NESTED: Readonly<Record<string, string>> = {
  sessionOptions: 'SessionOptions',
  retry: 'RetryOptions',
  recording: 'RecordingOptions',
  artifacts: 'ArtifactsOptions',
  downloads: 'DownloadsOptions',
  local: 'LocalOptions',
};

/** The functions that take options of a lease, with the entry and the type of their options. */
export const CALLERS = [
  ['withPooledBrowser', 'playwright', 'PlaywrightRunOptions'],
  ['leaseBrowser', 'puppeteer', 'PuppeteerLeaseOptions'],
  ['attachBrowser', 'playwright', 'PlaywrightAttachOptions'],
  ['mapPooledBrowsers', 'playwright', 'PlaywrightMapOptions'],
  ['serveProxy', 'index', 'ProxyOptions'],
] as const;
