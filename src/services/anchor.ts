import { leaseTags, type BrowserService, type SessionFields } from './browser-service.js';
import { listAt, objectAt, optionalTextAt, path, valueAt } from './service-json.js';
import { profileBy, proxyAs } from './session-fields.js';

/** A session of Anchor. `util.inspect` and JSON show its URLs without their keys. */
export interface AnchorSession {
  /** Identifier of the session. */
  readonly id: string;
  /** WebSocket URL for the Chrome DevTools Protocol; contains a secret. */
  readonly cdp_url: string;
  /** URL of a page to watch and control the browser. */
  readonly live_view_url?: string;
  /** Fields that this version of the library does not know. */
  readonly [field: string]: unknown;
}

/** A part of a browser of Anchor that can be switched on or off. */
export interface AnchorSwitch {
  /** Switches it on. */
  active?: boolean | undefined;
}

/** How to create a session of Anchor: fields of its request, by their names there. */
export interface AnchorOptions {
  /** Settings of the session. */
  session?:
    | {
        /** Minutes without a connection (default 5), and minutes in all (default 20), after which the service ends it. */
        timeout?: { idle_timeout?: number; max_duration?: number } | undefined;
        /** Records the session. Default: true. */
        recording?: AnchorSwitch | undefined;
        /** A proxy of the service, or one of yours. */
        proxy?: object | undefined;
        /** The live view only shows the browser. */
        live_view?: { read_only?: boolean } | undefined;
        /** URL of the first page, for leases without `startUrl`. */
        initial_url?: string | undefined;
        /** Tags of each session, besides those of the lease. */
        tags?: readonly string[] | undefined;
        [field: string]: unknown;
      }
    | undefined;
  /** Settings of the browser. */
  browser?:
    | {
        /** Window size in pixels. */
        viewport?: { width?: number; height?: number } | undefined;
        /** The profile to load, and whether to save it at the end. */
        profile?: { name?: string; persist?: boolean } | undefined;
        /** Runs headless. */
        headless?: AnchorSwitch | undefined;
        /** Blocks advertisements. */
        adblock?: AnchorSwitch | undefined;
        /** Solves captchas; needs a proxy. */
        captcha_solver?: AnchorSwitch | undefined;
        [field: string]: unknown;
      }
    | undefined;
  /** Ids of the identities (logins) to load. */
  identities?: readonly { id?: string }[] | undefined;
  /** Further fields of the request. */
  [field: string]: unknown;
}

/** The service's default for minutes without a connection. */
const IDLE_MINUTES = 5;

/**
 * Anchor (anchorbrowser.io), by the types of the package anchorbrowser 0.16.3 and its documentation; not run against the
 * service.
 *
 * The service can't be searched by tags, so a lost response is reported, not found.
 *
 * @param create The blocks of the request that creates a session.
 */
export function anchor(create: AnchorOptions = {}): BrowserService<AnchorSession> {
  const { session: settings } = create;
  return {
    name: 'anchor',
    baseUrl: 'https://api.anchorbrowser.io',
    auth: { header: 'anchor-api-key' },
    usualToken: {
      variables: ['ANCHORBROWSER_API_KEY', 'ANCHOR_API_KEY'],
      at: 'https://api.anchorbrowser.io',
    },
    secretParameters: ['apiKey', 'password'],
    idField: 'id',
    waits: 'never',
    lossAdvice:
      'Anchor ends each session after 20 minutes by default: pass anchor({ session: { timeout: { max_duration: 60 } } }), in minutes.',
    sessionOptions,
    acquire: (lease) => ({
      method: 'POST',
      path: '/v1/sessions',
      body: {
        ...create,
        session: {
          ...settings,
          ...(lease.startUrl !== undefined && { initial_url: lease.startUrl }),
          ...(lease.record && { recording: { active: true } }),
          tags: [
            ...(settings?.tags ?? []),
            ...Object.entries(leaseTags(lease)).map(([key, value]) => `${key}:${value}`),
          ],
        },
      },
    }),
    grant: (json) => {
      const session = objectAt<AnchorSession>(json, ['data'], ['id', 'cdp_url']);
      return {
        id: session.id,
        session,
        cdpUrl: session.cdp_url,
        liveViewUrl: optionalTextAt(session, 'live_view_url'),
        idleTimeout: (settings?.timeout?.idle_timeout ?? IDLE_MINUTES) * 60_000,
      };
    },
    // "Invalid API key or browser session ID": the session may have ended, or the key may have expired.
    release: (id) => ({ method: 'DELETE', path: path`/v1/sessions/${id}`, unclear: [401] }),
    replays,
    probe: { method: 'GET', path: '/v1/sessions/all/status' },
  };
}

const sessionOptions: SessionFields = {
  region: 'its proxies have regions, but not its browsers',
  viewport: (viewport) => ({ browser: { viewport } }),
  timeout: (ms) => ({ session: { timeout: { max_duration: Math.ceil(ms / 60_000) } } }),
  stealth: (active) => ({ browser: { extra_stealth: { active } } }),
  profile: profileBy('name', (name, persist) => ({ browser: { profile: { name, persist } } })),
  proxy: proxyAs({
    none: { session: { proxy: { active: false } } },
    any: { session: { proxy: { type: 'anchor_proxy', active: true } } },
    country: (country) => ({
      session: { proxy: { type: 'anchor_proxy', active: true, country_code: country.toLowerCase() } },
    }),
    own: ({ server, username, password }) => ({
      session: { proxy: { type: 'custom', active: true, server, username, password } },
    }),
  }),
};

const replays: Required<BrowserService>['replays'] = {
  // Links to files, with a signature.
  access: 'public',
  list: (id) => ({ method: 'GET', path: path`/v1/sessions/${id}/recordings` }),
  read: (json) =>
    listAt(json, 'data', 'items').map((recording) => {
      const [id, link, createdAt] = ['id', 'file_link', 'created_at'].map((field) =>
        optionalTextAt(recording, field),
      );
      return {
        ...(id && { replay_id: id }),
        ...(link && { replay_view_url: link }),
        // The file is created when the recording has ended.
        ...(link && createdAt && { finished_at: createdAt }),
      };
    }),
  delete: (id, replayId) => ({
    method: 'DELETE',
    path: path`/v1/sessions/${id}/recordings/${replayId}`,
  }),
  video: (id, replayId) => ({
    find: { method: 'GET', path: path`/v1/sessions/${id}/recordings` },
    read: (json) => {
      const all = listAt(json, 'data', 'items');
      const recording = all.find((one) => optionalTextAt(one, 'id') === replayId);
      if (recording === undefined) return undefined;
      const isPrimary = all.length === 1 || valueAt(recording, ['is_primary']) === true;
      const name = isPrimary ? 'primary' : replayId;
      return { method: 'GET', path: path`/v1/sessions/${id}/recordings/${name}/fetch` };
    },
  }),
};
