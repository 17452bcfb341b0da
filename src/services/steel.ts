import type { BrowserService, SessionFields } from './browser-service.js';
import { objectAt, optionalTextAt, path, textAt, urlAt, valueAt } from './service-json.js';
import { profileBy, proxyAs } from './session-fields.js';

/** A session of Steel. */
export interface SteelSession {
  /** Identifier of the session. */
  readonly id: string;
  /** WebSocket URL for the Chrome DevTools Protocol, without the key that it needs. */
  readonly websocketUrl: string;
  /** URL of a page to watch and control the browser. */
  readonly debugUrl?: string;
  /** URL of the session's page, which shows its recording. */
  readonly sessionViewerUrl?: string;
  /** State of the session. */
  readonly status?: 'live' | 'released' | 'failed';
  /** Time of the creation, ISO 8601. */
  readonly createdAt?: string;
  /** Milliseconds after which the service ends the session. */
  readonly timeout?: number;
  /** Milliseconds that the session has lasted. */
  readonly duration?: number;
  /** Window size in pixels. */
  readonly dimensions?: { readonly width: number; readonly height: number };
  /** Id of the profile. */
  readonly profileId?: string;
  /** Where the browser runs. */
  readonly region?: string;
  /** Fields that this version of the library does not know. */
  readonly [field: string]: unknown;
}

/** How to create a session of Steel: fields of its request, by their names there. */
export interface SteelOptions {
  /** Milliseconds after which the service ends the session. Default: the service's, 300,000. */
  timeout?: number | undefined;
  /** Where the browser runs: `lax`, `ord`, `iad`, … */
  region?: string | undefined;
  /** Window size in pixels. */
  dimensions?: { width: number; height: number } | undefined;
  /** Uses the service's own proxies. */
  useProxy?: boolean | object | undefined;
  /** URL of a proxy of yours. */
  proxyUrl?: string | undefined;
  /** Solves captchas. */
  solveCaptcha?: boolean | undefined;
  /** Blocks advertisements. */
  blockAds?: boolean | undefined;
  /** Runs headless. */
  headless?: boolean | undefined;
  /** Id of the profile to load. */
  profileId?: string | undefined;
  /** Saves the profile at the end. */
  persistProfile?: boolean | undefined;
  /** User agent of the browser. */
  userAgent?: string | undefined;
  /** Further fields of the request. */
  [field: string]: unknown;
}

/**
 * Steel, by the types of steel-sdk 0.18.0 and its documentation; not run against the service.
 *
 * The id of the lease becomes the id of the session, so a lost response loses no session. Sessions have no names and no tags.
 *
 * @param create Fields of the request that creates a session.
 */
export function steel(create: SteelOptions = {}): BrowserService<SteelSession> {
  return {
    name: 'steel',
    baseUrl: 'https://api.steel.dev',
    auth: { header: 'steel-api-key' },
    usualToken: { variables: ['STEEL_API_KEY'], at: 'https://api.steel.dev' },
    secretParameters: ['apiKey'],
    idField: 'id',
    waits: 'never',
    lossAdvice:
      'Steel ends each session after a time, 5 minutes by default: pass steel({ timeout: 900_000 }), in ms.',
    sessionOptions,
    acquire: ({ id }) => ({ method: 'POST', path: '/v1/sessions', body: { ...create, sessionId: id } }),
    grant: (json, _lease, { token }) => {
      const session = objectAt<SteelSession>(json, [], ['id']);
      const url = urlAt(session, 'websocketUrl');
      if (token !== undefined) url.searchParams.set('apiKey', token);
      url.searchParams.set('sessionId', session.id);
      return {
        id: session.id,
        session,
        cdpUrl: url.href,
        liveViewUrl: optionalTextAt(session, 'debugUrl'),
      };
    },
    release: (id) => ({ method: 'POST', path: path`/v1/sessions/${id}/release`, body: {} }),
    find: ({ id }) => ({
      method: 'GET',
      path: path`/v1/sessions/${id}`,
      list: [],
      at: ['id'],
      isWhole: true,
    }),
    replays: {
      access: 'login',
      list: (id) => ({ method: 'GET', path: path`/v1/sessions/${id}` }),
      read: (json, id) => [
        {
          replay_id: id,
          started_at: textAt(json, 'createdAt'),
          ...endOf(json),
          replay_view_url: textAt(json, 'sessionViewerUrl'),
        },
      ],
    },
    probe: { method: 'GET', path: '/v1/sessions?status=live&limit=1' },
  };
}

const sessionOptions: SessionFields = {
  region: (region) => ({ region }),
  viewport: (dimensions) => ({ dimensions }),
  timeout: (timeout) => ({ timeout: Math.ceil(timeout) }),
  stealth: (stealth) => ({ stealthConfig: { skipFingerprintInjection: !stealth } }),
  profile: profileBy('id', (profileId, persistProfile) => ({ profileId, persistProfile })),
  proxy: proxyAs({
    none: { useProxy: false, proxyUrl: undefined },
    any: { useProxy: true },
    country: (country) => ({ useProxy: { geolocation: { country: country.toUpperCase() } } }),
    own: ({ url }) => ({ proxyUrl: url.href }),
  }),
};

/** The recording ends with the session. */
function endOf(session: unknown): { finished_at?: string } {
  const end = Date.parse(textAt(session, 'createdAt')) + Number(valueAt(session, ['duration']));
  const isOver = textAt(session, 'status') !== 'live';
  return isOver && !Number.isNaN(end) ? { finished_at: new Date(end).toISOString() } : {};
}
