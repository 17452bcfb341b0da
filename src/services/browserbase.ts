import {
  LEASE_TAG,
  leaseInTags,
  leaseTags,
  optionWithTags,
  type BrowserService,
  type LeaseFault,
  type LeaseRequest,
  type SessionSearch,
  type SessionFields,
} from './browser-service.js';
import { listAt, objectAt, optionalTextAt, path, textAt, valueAt } from './service-json.js';
import { profileBy, proxyAs } from './session-fields.js';

/** A session of Browserbase. `util.inspect` and JSON show its URLs without their keys. */
export interface BrowserbaseSession {
  /** Identifier of the session. */
  readonly id: string;
  /** WebSocket URL for the Chrome DevTools Protocol; contains a secret. */
  readonly connectUrl: string;
  /** Secret of the session's own HTTP requests. */
  readonly signingKey?: string;
  /** HTTP URL for Selenium. */
  readonly seleniumRemoteUrl?: string;
  /** The session survives its connections. */
  readonly keepAlive?: boolean;
  /** State of the session. */
  readonly status?: 'PENDING' | 'RUNNING' | 'ERROR' | 'TIMED_OUT' | 'COMPLETED';
  /** The project of the session. */
  readonly projectId?: string;
  /** Where the browser runs. */
  readonly region?: string;
  /** Time of the creation, ISO 8601. */
  readonly createdAt?: string;
  /** When the service ends the session, ISO 8601. */
  readonly expiresAt?: string;
  /** The context (cookies and logins) of the session. */
  readonly contextId?: string;
  /** Metadata of the session. */
  readonly userMetadata?: Readonly<Record<string, unknown>>;
  /** Fields that this version of the library does not know. */
  readonly [field: string]: unknown;
}

/** How to create a session of Browserbase: fields of its request, by their names there. */
export interface BrowserbaseOptions {
  /** The project. Default: that of the key. */
  projectId?: string | undefined;
  /** Where the browser runs. */
  region?: 'us-west-2' | 'us-east-1' | 'eu-central-1' | 'ap-southeast-1' | undefined;
  /** Seconds after which the service ends the session, 60 to 21,600. */
  timeout?: number | undefined;
  /** The session survives its connections. Default: only with the option `reconnect`. Not every plan has it. */
  keepAlive?: boolean | undefined;
  /** `true`: the service's own proxies; or a list of proxies. */
  proxies?: boolean | readonly object[] | undefined;
  /** Id of an uploaded extension. */
  extensionId?: string | undefined;
  /** Settings of the browser. */
  browserSettings?: BrowserbaseBrowserSettings | undefined;
  /** Metadata of each session, besides the tags of the lease: together less than 512 characters of JSON. */
  userMetadata?: Readonly<Record<string, unknown>> | undefined;
  /** Further fields of the request. */
  [field: string]: unknown;
}

/** Settings of a browser of Browserbase. */
export interface BrowserbaseBrowserSettings {
  /** Window size in pixels. */
  viewport?: { width?: number; height?: number } | undefined;
  /** The context to load, and whether to save it at the end. */
  context?: { id: string; persist?: boolean } | undefined;
  /** Solves captchas. */
  solveCaptchas?: boolean | undefined;
  /** Blocks advertisements. */
  blockAds?: boolean | undefined;
  /** Records the session. */
  recordSession?: boolean | undefined;
  /** Further settings. */
  [field: string]: unknown;
}

/** Milliseconds without a command after which the service closes a connection. */
const IDLE = 600_000;
/** The JSON of the metadata must be shorter. */
const METADATA_LIMIT = 512;
/** Milliseconds since 1970 are larger than any time within a recording. */
const YEAR_2001 = 1e12;

/**
 * Browserbase, by the types of `@browserbasehq/sdk` 2.21.0 and its documentation; not run against the service.
 *
 * Without `keepAlive`, a session ends with its connection.
 *
 * @param create Fields of the request that creates a session.
 */
export function browserbase(create: BrowserbaseOptions = {}): BrowserService<BrowserbaseSession> {
  const { projectId, browserSettings, userMetadata } = create;
  const metadataOf = (lease: LeaseRequest) => ({
    ...userMetadata,
    ...leaseTags(lease, (tags) => JSON.stringify({ ...userMetadata, ...tags }).length < METADATA_LIMIT),
  });
  return {
    name: 'browserbase',
    baseUrl: 'https://api.browserbase.com',
    auth: { header: 'x-bb-api-key' },
    usualToken: { variables: ['BROWSERBASE_API_KEY'], at: 'https://api.browserbase.com' },
    secretParameters: ['signingKey', 'apiKey', 'password'],
    idField: 'id',
    waits: 'never',
    lossAdvice:
      'Browserbase ends each session after a time, by default that of the project: pass browserbase({ timeout: 3600 }), in s.',
    keepAlive: IDLE / 2,
    refuses: (lease) => metadataFault(lease, userMetadata),
    sessionOptions,
    acquire: (lease) => ({
      method: 'POST',
      path: '/v1/sessions',
      body: {
        ...(lease.keepAlive && { keepAlive: true }),
        ...create,
        ...(lease.record && { browserSettings: { ...browserSettings, recordSession: true } }),
        userMetadata: metadataOf(lease),
      },
    }),
    grant: (json) => {
      const session = objectAt<BrowserbaseSession>(json, [], ['id', 'connectUrl']);
      return {
        id: session.id,
        session,
        cdpUrl: session.connectUrl,
        endsWithConnection: session.keepAlive !== true,
      };
    },
    release: (id) => ({
      method: 'POST',
      path: path`/v1/sessions/${id}`,
      body: { status: 'REQUEST_RELEASE', projectId },
    }),
    find: (lease) => (LEASE_TAG in metadataOf(lease) ? searchFor(lease.id) : undefined),
    replays,
    sessions,
    probe: { method: 'GET', path: '/v1/sessions?status=RUNNING' },
  };
}

const sessionOptions: SessionFields = {
  region: (region) => ({ region }),
  viewport: (viewport) => ({ browserSettings: { viewport } }),
  timeout: (ms) => ({ timeout: Math.ceil(ms / 1000) }),
  stealth: (verified) => ({ browserSettings: { verified } }),
  profile: profileBy('id', (id, persist) => ({ browserSettings: { context: { id, persist } } })),
  proxy: proxyAs({
    none: { proxies: false },
    any: { proxies: true },
    country: (country) => ({
      proxies: [{ type: 'browserbase', geolocation: { country: country.toUpperCase() } }],
    }),
    own: ({ server, username, password }) => ({
      proxies: [{ type: 'external', server, username, password }],
    }),
  }),
};

function metadataFault(
  lease: Pick<LeaseRequest, 'name' | 'tags'>,
  userMetadata: BrowserbaseOptions['userMetadata'],
): LeaseFault | undefined {
  const { name, tags } = lease;
  const { length } = JSON.stringify({ ...userMetadata, ...tags, ...(name !== undefined && { name }) });
  if (length < METADATA_LIMIT) return undefined;
  const reason =
    `Browserbase stores at most ${METADATA_LIMIT - 1} characters of metadata for a session, not ${length}: those of ` +
    'browserbase({ userMetadata }), the tags and the name, as JSON.';
  return { option: optionWithTags(lease, 'userMetadata'), reason };
}

function searchFor(id: string): SessionSearch {
  const query = `user_metadata['${LEASE_TAG}']:'${id}'`;
  return { method: 'GET', path: path`/v1/sessions?q=${query}`, list: [], at: ['userMetadata', LEASE_TAG] };
}

const replays: Required<BrowserService>['replays'] = {
  access: 'login',
  list: (id) => ({ method: 'GET', path: path`/v1/sessions/${id}/replays` }),
  // One for each page. Their playlists (HLS) need the key, so the link is that of the session's own page.
  read: (json, id) =>
    listAt(json, 'pages').map((page) => ({
      replay_id: textAt(page, 'pageId'),
      ...timeAt(page, 'startTimeMs', 'started_at'),
      ...timeAt(page, 'endTimeMs', 'finished_at'),
      replay_view_url: `https://www.browserbase.com/sessions/${id}`,
    })),
  // The times of a page can count from its beginning: then a recording lasts as long as its session.
  session: {
    request: (id) => ({ method: 'GET', path: path`/v1/sessions/${id}` }),
    read: (json) => {
      objectAt(json, [], ['id']);
      const [began, ended] = [optionalTextAt(json, 'startedAt'), optionalTextAt(json, 'endedAt')];
      return { ...(began && { started_at: began }), ...(ended && { finished_at: ended }) };
    },
  },
  video: (id, replayId) => {
    const downloads = path`/v1/sessions/${id}/recording/downloads`;
    return {
      order: { method: 'POST', path: downloads },
      find: { method: 'GET', path: downloads },
      read: (json) => {
        const page = listAt(json, 'downloads').find((one) => valueAt(one, ['pageId']) === replayId);
        const status = page === undefined ? undefined : textAt(page, 'status');
        if (status === 'FAILED') throw new Error('has no video: the service could not write it');
        return status === 'COMPLETED' ? textAt(page, 'downloadUrl') : undefined;
      },
    };
  },
};

const sessions: Required<BrowserService>['sessions'] = {
  list: (page) => (page === 0 ? { method: 'GET', path: '/v1/sessions?status=RUNNING' } : undefined),
  read: (json) =>
    listAt(json).map((session) => ({
      id: textAt(session, 'id'),
      ...leaseInTags(valueAt(session, ['userMetadata'])),
      createdAt: optionalTextAt(session, 'createdAt'),
    })),
};

/** A time of a recording, where it is one: the types do not say whether it counts from 1970 or from its beginning. */
function timeAt(page: unknown, from: string, to: 'started_at' | 'finished_at') {
  const time = Number(valueAt(page, [from]));
  return time > YEAR_2001 ? { [to]: new Date(time).toISOString() } : {};
}
