import {
  LEASE_TAG,
  leaseInTags,
  leaseTags,
  optionWithTags,
  type BrowserService,
  type LeaseFault,
  type LeaseRequest,
  type ServiceRequest,
  type SessionFields,
} from './browser-service.js';
import { listAt, objectAt, optionalTextAt, path, textAt, valueAt } from './service-json.js';
import { profileBy, proxyAs } from './session-fields.js';

/** A browser of Browser Use. `util.inspect` and JSON show it without its CDP URL. */
export interface BrowserUseSession {
  /** Identifier of the session. */
  readonly id: string;
  /** URL for the Chrome DevTools Protocol: a WebSocket, or an https address that names it. It is a secret. */
  readonly cdpUrl: string;
  /** URL of a page to watch and control the browser. */
  readonly liveUrl?: string | null;
  /** State of the session. */
  readonly status?: 'active' | 'stopped';
  /** When the browser started, ISO 8601. */
  readonly startedAt?: string;
  /** When the service ends the session, ISO 8601. */
  readonly timeoutAt?: string;
  /** Labels of the browser. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** Fields that this version of the library does not know. */
  readonly [field: string]: unknown;
}

/** How to create a browser of Browser Use: fields of its request, by their names there. */
export interface BrowserUseOptions {
  /** Minutes after which the service ends the session, at most 240. Default: the service's, 60. */
  timeout?: number | undefined;
  /** Id of the profile to load. */
  profileId?: string | undefined;
  /** Country of the proxy; `null`: no proxy. Default: the service's, `us`. */
  proxyCountryCode?: string | null | undefined;
  /** A proxy of yours. */
  customProxy?: { host: string; port: number; username?: string; password?: string } | undefined;
  /** Width of the screen in pixels. */
  browserScreenWidth?: number | undefined;
  /** Height of the screen in pixels. */
  browserScreenHeight?: number | undefined;
  /** Solves captchas. Default: the service's, true. */
  solveCaptchas?: boolean | undefined;
  /** Records the session. Default: the service's, false. */
  enableRecording?: boolean | undefined;
  /** Labels of each browser, besides the tags of the lease: together at most 10. */
  metadata?: Readonly<Record<string, string>> | undefined;
  /** Further fields of the request. */
  [field: string]: unknown;
}

const MOST_LABELS = 10;
const PAGE = 100;

/**
 * The browsers of Browser Use, by the types of browser-use-sdk 3.11.3 (its v3) and its documentation; not run against the
 * service.
 *
 * @param create Fields of the request that creates a browser.
 */
export function browserUse(create: BrowserUseOptions = {}): BrowserService<BrowserUseSession> {
  const { metadata } = create;
  const labelsOf = (lease: LeaseRequest) => ({
    ...metadata,
    ...leaseTags(lease, (tags) => Object.keys({ ...metadata, ...tags }).length <= MOST_LABELS),
  });
  return {
    name: 'browser-use',
    baseUrl: 'https://api.browser-use.com/api/v3',
    auth: { header: 'x-browser-use-api-key' },
    usualToken: { variables: ['BROWSER_USE_API_KEY'], at: 'https://api.browser-use.com/api/v3' },
    // The host name of the CDP URL is all that protects a browser; the service repeats a wrong request in its error.
    secretParameters: ['cdpUrl', 'password'],
    idField: 'id',
    waits: 'never',
    lossAdvice:
      'Browser Use ends each session after 60 minutes by default: pass browserUse({ timeout: 240 }), in minutes.',
    refuses: (lease) => labelFault(lease, metadata),
    sessionOptions,
    acquire: (lease) => ({
      method: 'POST',
      path: '/browsers',
      body: { ...create, ...(lease.record && { enableRecording: true }), metadata: labelsOf(lease) },
    }),
    grant: (json) => {
      const session = objectAt<BrowserUseSession>(json, [], ['id', 'cdpUrl']);
      return {
        id: session.id,
        session,
        cdpUrl: session.cdpUrl,
        liveViewUrl: optionalTextAt(session, 'liveUrl'),
      };
    },
    release: (id) => ({ method: 'PATCH', path: path`/browsers/${id}`, body: { action: 'stop' } }),
    // The newest come first: the lost one is on the first page.
    find: (lease) =>
      LEASE_TAG in labelsOf(lease)
        ? { ...listActive(0, `&metadata=${encodeURIComponent(`${LEASE_TAG}:${lease.id}`)}`), ...FOUND }
        : undefined,
    replays,
    sessions,
    probe: listActive(0),
  };
}

const sessionOptions: SessionFields = {
  viewport: ({ width, height }) => ({ browserScreenWidth: width, browserScreenHeight: height }),
  timeout: (ms) => ({ timeout: Math.ceil(ms / 60_000) }),
  profile: profileBy('id', (profileId, save) =>
    save === undefined ? { profileId } : 'it decides itself whether a profile is saved',
  ),
  proxy: proxyAs({
    none: { proxyCountryCode: null, customProxy: undefined },
    country: (country) => ({ proxyCountryCode: country.toLowerCase() }),
    own: ({ url, username, password }) => ({
      customProxy: {
        host: url.hostname,
        port: Number(url.port || DEFAULT_PORTS[url.protocol]),
        username,
        password,
      },
    }),
  }),
};

const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443, 'socks5:': 1080 };

function labelFault(
  lease: Pick<LeaseRequest, 'name' | 'tags'>,
  metadata: BrowserUseOptions['metadata'],
): LeaseFault | undefined {
  const { name, tags } = lease;
  const count = Object.keys({ ...metadata, ...tags, ...(name !== undefined && { name }) }).length;
  if (count <= MOST_LABELS) return undefined;
  const reason =
    `Browser Use stores at most ${MOST_LABELS} labels for a browser, not ${count}: those of browserUse({ metadata }), ` +
    'the tags and the name.';
  return { option: optionWithTags(lease, 'metadata'), reason };
}

const replays: Required<BrowserService>['replays'] = {
  // A link to the file, with a signature.
  access: 'public',
  list: (id) => ({ method: 'GET', path: path`/browsers/${id}` }),
  read: (json, id) => {
    if (valueAt(json, ['recordingAvailable']) === false) return [];
    const started = { replay_id: id, started_at: textAt(json, 'startedAt') };
    const link = optionalTextAt(json, 'recordingUrl');
    if (link === undefined) return [started];
    return [{ ...started, finished_at: textAt(json, 'finishedAt'), replay_view_url: link }];
  },
  video: (id) => ({
    find: { method: 'GET', path: path`/browsers/${id}` },
    read: (json) => {
      objectAt(json, [], ['id']);
      if (valueAt(json, ['recordingAvailable']) === false) throw new Error('has no video');
      return optionalTextAt(json, 'recordingUrl');
    },
  }),
};

const sessions: Required<BrowserService>['sessions'] = {
  list: (page) => listActive(page),
  read: (json) =>
    listAt(json, 'items').map((session) => ({
      id: textAt(session, 'id'),
      ...leaseInTags(valueAt(session, ['metadata'])),
      createdAt: optionalTextAt(session, 'startedAt'),
    })),
};

const FOUND = { list: ['items'], at: ['metadata', LEASE_TAG] } as const;

/** @param filter Further parameters: with more sessions than a page has, the one of a lease is not on the first page. */
function listActive(page: number, filter = ''): ServiceRequest {
  const number = `${page + 1}`;
  return {
    method: 'GET',
    path: path`/browsers?filterBy=active&pageSize=${`${PAGE}`}&pageNumber=${number}` + filter,
  };
}
