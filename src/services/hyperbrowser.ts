import type { BrowserService, SessionFields } from './browser-service.js';
import { objectAt, optionalTextAt, path, textAt, valueAt } from './service-json.js';
import { profileBy, proxyAs } from './session-fields.js';

/** A session of Hyperbrowser. `util.inspect` and JSON show it without its token. */
export interface HyperbrowserSession {
  /** Identifier of the session. */
  readonly id: string;
  /** WebSocket URL for the Chrome DevTools Protocol; contains a secret. */
  readonly wsEndpoint: string;
  /** Secret of the session. */
  readonly token?: string;
  /** URL of a page to watch and control the browser; contains a secret. */
  readonly liveUrl?: string;
  /** URL of the session's page, which shows its recording. */
  readonly sessionUrl?: string;
  /** State of the session. */
  readonly status?: 'active' | 'closed' | 'close-error' | 'error';
  /** The team of the session. */
  readonly teamId?: string;
  /** Time of the creation, ISO 8601. */
  readonly createdAt?: string;
  /** Fields that this version of the library does not know. */
  readonly [field: string]: unknown;
}

/** How to create a session of Hyperbrowser: fields of its request, by their names there. */
export interface HyperbrowserOptions {
  /** Minutes after which the service ends the session. */
  timeoutMinutes?: number | undefined;
  /** Where the browser runs: `us-west`, `europe-west`, … */
  region?: string | undefined;
  /** Window size in pixels. */
  screen?: { width: number; height: number } | undefined;
  /** Runs in stealth mode. */
  useStealth?: boolean | undefined;
  /** Uses the service's own proxies. */
  useProxy?: boolean | undefined;
  /** Country of the proxy. */
  proxyCountry?: string | undefined;
  /** Solves captchas. */
  solveCaptchas?: boolean | undefined;
  /** Blocks advertisements. */
  adblock?: boolean | undefined;
  /** Records the pages. */
  enableWebRecording?: boolean | undefined;
  /** Records a video. */
  enableVideoWebRecording?: boolean | undefined;
  /** The profile to load, and whether to save it at the end. */
  profile?: { id?: string; persistChanges?: boolean } | undefined;
  /** Further fields of the request. */
  [field: string]: unknown;
}

/**
 * Hyperbrowser, by the types of `@hyperbrowser/sdk` 0.92.6 and its documentation; not run against the service.
 *
 * Sessions have no names and no tags, so a lost response is reported, not found.
 *
 * @param create Fields of the request that creates a session.
 */
export function hyperbrowser(create: HyperbrowserOptions = {}): BrowserService<HyperbrowserSession> {
  return {
    name: 'hyperbrowser',
    baseUrl: 'https://api.hyperbrowser.ai',
    auth: { header: 'x-api-key' },
    usualToken: { variables: ['HYPERBROWSER_API_KEY'], at: 'https://api.hyperbrowser.ai' },
    secretParameters: ['token', 'proxyServerPassword'],
    idField: 'id',
    waits: 'never',
    lossAdvice: 'Hyperbrowser ends each session after a time: pass hyperbrowser({ timeoutMinutes: 60 }).',
    sessionOptions,
    acquire: ({ record }) => ({
      method: 'POST',
      path: '/api/session',
      body: { ...create, ...(record && { enableWebRecording: true, enableVideoWebRecording: true }) },
    }),
    grant: (json) => {
      const session = objectAt<HyperbrowserSession>(json, [], ['id', 'wsEndpoint']);
      return {
        id: session.id,
        session,
        cdpUrl: session.wsEndpoint,
        liveViewUrl: optionalTextAt(session, 'liveUrl'),
      };
    },
    release: (id) => ({ method: 'PUT', path: path`/api/session/${id}/stop` }),
    replays,
    probe: { method: 'GET', path: '/api/sessions?status=active&page=1&limit=1' },
  };
}

const sessionOptions: SessionFields = {
  region: (region) => ({ region }),
  viewport: (screen) => ({ screen }),
  timeout: (ms) => ({ timeoutMinutes: Math.ceil(ms / 60_000) }),
  stealth: (useStealth) => ({ useStealth }),
  profile: profileBy('id', (id, persistChanges) => ({ profile: { id, persistChanges } })),
  proxy: proxyAs({
    none: { useProxy: false },
    any: { useProxy: true },
    country: (country) => ({ useProxy: true, proxyCountry: country.toUpperCase() }),
    own: ({ server, username, password }) => ({
      useProxy: true,
      proxyServer: server,
      proxyServerUsername: username,
      proxyServerPassword: password,
    }),
  }),
};

const replays: Required<BrowserService>['replays'] = {
  access: 'login',
  // The request for the video's own URL works only after the end; the session's page shows the recording.
  list: (id) => ({ method: 'GET', path: path`/api/session/${id}` }),
  read: (json, id) => {
    objectAt(json, [], []);
    const isRecorded = ['enableWebRecording', 'enableVideoWebRecording'].some(
      (field) => valueAt(json, ['launchState', field]) === true,
    );
    if (!isRecorded) return [];
    const { createdAt, sessionUrl } = objectAt<HyperbrowserSession>(json, [], ['createdAt', 'sessionUrl']);
    return [
      {
        replay_id: id,
        started_at: createdAt!,
        ...endOf(json),
        replay_view_url: sessionUrl!,
      },
    ];
  },
  video: (id) => ({
    find: { method: 'GET', path: path`/api/session/${id}/video-recording-url` },
    read: (json) => {
      const status = textAt(json, 'status');
      if (status === 'not_enabled')
        throw new Error('has no video: the session was created without enableVideoWebRecording');
      if (status === 'failed') throw new Error(`has no video: ${optionalTextAt(json, 'error') ?? status}`);
      return status === 'completed' ? textAt(json, 'recordingUrl') : undefined;
    },
  }),
};

/** The recording ends with the session. */
function endOf(session: unknown): { finished_at?: string } {
  const end = valueAt(session, ['endTime']);
  return typeof end === 'number' && end > 0 ? { finished_at: new Date(end).toISOString() } : {};
}
