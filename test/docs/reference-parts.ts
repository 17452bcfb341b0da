/** Some members of a type, under a heading of their own. */
export interface Group {
  readonly title: string;
  readonly names: readonly string[];
  /** Links to guides. */
  readonly more?: string;
}

/** The options of a lease, by what they are for. The first five are enough for most calls. */
export const LEASE_GROUPS: readonly Group[] = [
  {
    title: 'The five to begin with',
    names: ['replays', 'timeout', 'acquireTimeout', 'contextOptions', 'release'],
    more: '[replays](guides/replays.md), [log in once](guides/log-in-once.md), [the end of a lease](guides/release.md)',
  },
  {
    title: 'The wait for a browser',
    names: ['signal', 'unreachableTimeout', 'pollTimeout', 'failoverAfter', 'retry', 'connectAttempts'],
    more: '[several services](guides/several-services.md)',
  },
  {
    title: 'The lease and its session',
    names: ['name', 'tags', 'owner', 'sessionOptions', 'startUrl', 'lifetime', 'maxLifetime'],
    more: '[session options at each service](guides/several-services.md#options-that-mean-the-same-everywhere), [an end for each lease](guides/agent-runtimes.md#an-end-for-each-lease)',
  },
  {
    title: 'The connection',
    names: ['context', 'connectTimeout', 'protocol', 'connectOptions', 'reconnect', 'chromium', 'puppeteer'],
  },
  {
    title: 'What pages reach',
    names: ['exposeNetwork', 'allowedHosts'],
    more: '[your localhost](localhost/README.md), [allowed hosts](allowed-hosts/README.md)',
  },
  {
    title: 'Recordings, files and events',
    names: ['recording', 'replaysTimeout', 'artifacts', 'downloads', 'onEvent'],
    more: '[replays](guides/replays.md), [downloads](guides/downloads.md), [artifacts](../src/features/artifacts/README.md)',
  },
  { title: 'The release', names: ['releaseTimeout', 'awaitRelease', 'releaseOnCrash'] },
];

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
