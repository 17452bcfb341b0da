import type { IncomingMessage } from 'node:http';
import { createRequire } from 'node:module';
import { text as readText } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { BrowserPool, type BrowserService } from '../../src/index.js';
import { coreOf } from '../../src/pool/pool-core.js';
import {
  anchor,
  browserbase,
  browserUse,
  hyperbrowser,
  kernel,
  LEASE_TAG,
  steel,
  type ServiceRequest,
  type VideoSearch,
} from '../../src/services.js';
import { acquireRequest } from '../../src/services/check-service.js';
import { jsonOf } from '../../src/shared/json.js';
import { TOKEN } from '../support/fake-service.js';
import { Site } from '../support/site.js';

/**
 * The requests of six official packages, compared with those of our services. Both are sent to a server on this machine, and
 * compared field by field: method, path, query, key, type, accepted type, and body.
 */
const installed = createRequire(new URL('../sdks/package.json', import.meta.url));
const isInstalled = ['@onkernel/sdk', 'steel-sdk'].every((name) => {
  try {
    return installed.resolve(name) !== '';
  } catch {
    return false;
  }
});
const SKIPPED = isInstalled ? '' : ' (skipped: npm ci --prefix test/sdks installs them)';

/** One operation. */
interface Operation {
  /** The method of the package, and its arguments. */
  readonly theirs: readonly [method: string, ...parts: unknown[]];
  readonly ours: ServiceRequest | undefined;
  /** The fields in which they differ, and why. */
  readonly differences?: Readonly<Record<string, string>>;
}

interface Sdk {
  readonly service: BrowserService;
  /** The package, its class, and the name of the address in its options. */
  readonly package: readonly [name: string, className: string, address: string];
  /** The name of the key in its options. */
  readonly key?: string;
  /** Its other options. */
  readonly options?: object;
  /** Path of the service at its server. */
  readonly below?: string;
  readonly operations: Readonly<Record<string, Operation>>;
}

const ID = 'one-session';
const LEASE = {
  pool: 'scrapers',
  id: 'a-lease',
  name: 'a-name',
  tags: { team: 'a' },
  startUrl: 'https://example.com/',
  keepAlive: false,
  record: false,
};
const VIEWPORT = { width: 800, height: 600 };

const OWN_TAG = 'shows whose lease it is, and finds the lease of a lost response';
const NAME = 'the service has no field for a name';
const UNREAD = 'the package reads nothing; we read why a request was refused';
const NO_BODY = 'without a body, its type says nothing';
const ANY_TYPE = 'the package reads JSON, and accepts anything';
const ANY_VIDEO = 'a video of any type is stored';

const OF_PROJECT = kernel({ projectId: 'project-1', telemetry: true });

const CREATE = {
  headless: false,
  stealth: true,
  timeout_seconds: 300,
  kiosk_mode: true,
  gpu: false,
  extensions: [{ name: 'blocker' }],
  chrome_policy: { HomepageLocation: 'https://example.com' },
  telemetry: { enabled: true },
};
const CREATED = kernel({ create: CREATE });

const SDKS: Readonly<Record<string, Sdk>> = {
  'kernel with a project': {
    service: OF_PROJECT,
    package: ['@onkernel/sdk', 'Kernel', 'baseURL'],
    options: { projectID: 'project-1' },
    operations: {
      acquire: {
        theirs: ['browserPools.acquire', 'scrapers', { telemetry: { enabled: true } }],
        ours: OF_PROJECT.acquire({ ...LEASE, name: undefined, tags: undefined, startUrl: undefined }),
        differences: { [`body.tags.${LEASE_TAG}`]: OWN_TAG },
      },
      release: {
        theirs: ['browserPools.release', 'scrapers', { session_id: ID, reuse: true }],
        ours: OF_PROJECT.release(ID, { pool: 'scrapers', reuse: true }),
        differences: { accept: UNREAD },
      },
    },
  },
  'kernel without a pool': {
    service: CREATED,
    package: ['@onkernel/sdk', 'Kernel', 'baseURL'],
    operations: {
      acquire: {
        theirs: [
          'browsers.create',
          {
            ...CREATE,
            name: 'a-name',
            tags: { team: 'a' },
            start_url: 'https://example.com/',
            viewport: VIEWPORT,
            profile: { name: 'shopper', save_changes: true },
            proxy_id: 'proxy-1',
          },
        ],
        ours: acquireRequest(CREATED, {
          ...LEASE,
          sessionOptions: {
            viewport: VIEWPORT,
            profile: { name: 'shopper', save: true },
            proxy: { id: 'proxy-1' },
          },
        }),
        differences: { [`body.tags.${LEASE_TAG}`]: OWN_TAG },
      },
      release: {
        theirs: ['browsers.deleteByID', ID],
        ours: CREATED.release(ID, { pool: 'kernel', reuse: false }),
        differences: { accept: UNREAD },
      },
      find: {
        theirs: ['browsers.list', { tags: { [LEASE_TAG]: 'a-lease' } }],
        ours: requestOf(CREATED.find!(LEASE)!),
      },
      probe: { theirs: ['browsers.list', { limit: 1 }], ours: CREATED.probe },
    },
  },
  kernel: {
    service: kernel,
    package: ['@onkernel/sdk', 'Kernel', 'baseURL'],
    operations: {
      acquire: {
        theirs: [
          'browserPools.acquire',
          'scrapers',
          {
            acquire_timeout_seconds: 7,
            name: 'a-name',
            tags: { team: 'a' },
            start_url: 'https://example.com/',
          },
        ],
        ours: kernel.acquire({ ...LEASE, wait: 7 }),
        differences: { [`body.tags.${LEASE_TAG}`]: OWN_TAG },
      },
      release: {
        theirs: ['browserPools.release', 'scrapers', { session_id: ID, reuse: false }],
        ours: kernel.release(ID, { pool: 'scrapers', reuse: false }),
        differences: { accept: UNREAD },
      },
      get: { theirs: ['browsers.retrieve', ID], ours: requestOf(kernel.owner!(ID, LEASE)!) },
      find: {
        theirs: ['browsers.list', { tags: { [LEASE_TAG]: 'a-lease' } }],
        ours: requestOf(kernel.find!(LEASE)!),
      },
      list: { theirs: ['browsers.list', { limit: 100, offset: 100 }], ours: kernel.sessions!.list(1, 100) },
      flush: {
        theirs: ['browserPools.flush', 'scrapers'],
        ours: kernel.pool!.flush!('scrapers'),
        differences: { accept: UNREAD },
      },
      'record of the pool': {
        theirs: ['browserPools.retrieve', 'scrapers'],
        ours: kernel.pool!.describe!('scrapers'),
      },
      recordings: { theirs: ['browsers.replays.list', ID], ours: kernel.replays!.list(ID) },
      'start of a recording': {
        theirs: ['browsers.replays.start', ID, { framerate: 5, max_duration_in_seconds: 60 }],
        ours: kernel.replays!.start!(ID, { frameRate: 5, maxSeconds: 60 }),
      },
      'stop of a recording': {
        theirs: ['browsers.replays.stop', 'r', { id: ID }],
        ours: kernel.replays!.stop!(ID, 'r'),
        differences: { accept: UNREAD },
      },
      video: {
        theirs: ['browsers.replays.download', 'r', { id: ID }],
        ours: videoOf(kernel, 'r').request,
        differences: { accept: ANY_VIDEO },
      },
    },
  },
  browserbase: {
    service: browserbase(),
    package: ['@browserbasehq/sdk', 'Browserbase', 'baseURL'],
    operations: {
      create: {
        theirs: [
          'sessions.create',
          {
            projectId: 'p',
            region: 'eu-central-1',
            api_timeout: 600,
            keepAlive: true,
            browserSettings: { viewport: VIEWPORT, recordSession: true },
            userMetadata: { team: 'a' },
          },
        ],
        ours: browserbase({
          projectId: 'p',
          region: 'eu-central-1',
          timeout: 600,
          browserSettings: { viewport: VIEWPORT },
        }).acquire({ ...LEASE, keepAlive: true, record: true }),
        differences: { 'body.userMetadata.name': NAME, [`body.userMetadata.${LEASE_TAG}`]: OWN_TAG },
      },
      get: { theirs: ['sessions.retrieve', ID], ours: browserbase().replays!.session!.request(ID) },
      find: {
        theirs: ['sessions.list', { q: `user_metadata['${LEASE_TAG}']:'a-lease'` }],
        ours: requestOf(browserbase().find!(LEASE)!),
      },
      list: { theirs: ['sessions.list', { status: 'RUNNING' }], ours: browserbase().sessions!.list(0, 0) },
      release: {
        theirs: ['sessions.update', ID, { status: 'REQUEST_RELEASE', projectId: 'p' }],
        ours: browserbase({ projectId: 'p' }).release(ID, { pool: 'p', reuse: false }),
      },
      recordings: { theirs: ['sessions.replays.retrieve', ID], ours: browserbase().replays!.list(ID) },
      'order of the videos': {
        theirs: ['sessions.recording.downloads.create', ID],
        ours: videoOf(browserbase(), '0').order,
        differences: { 'content-type': NO_BODY },
      },
      videos: {
        theirs: ['sessions.recording.downloads.list', ID],
        ours: videoOf(browserbase(), '0').request,
      },
    },
  },
  steel: {
    service: steel(),
    package: ['steel-sdk', 'Steel', 'baseURL'],
    key: 'steelAPIKey',
    operations: {
      create: {
        theirs: ['sessions.create', { sessionId: 'a-lease', timeout: 60_000, dimensions: VIEWPORT }],
        ours: steel({ timeout: 60_000, dimensions: VIEWPORT }).acquire(LEASE),
      },
      find: { theirs: ['sessions.retrieve', 'a-lease'], ours: requestOf(steel().find!(LEASE)!) },
      list: { theirs: ['sessions.list', { status: 'live', limit: 1 }], ours: steel().probe },
      release: {
        theirs: ['sessions.release', ID, {}],
        ours: steel().release(ID, { pool: 'p', reuse: false }),
      },
      recordings: { theirs: ['sessions.retrieve', ID], ours: steel().replays!.list(ID) },
    },
  },
  hyperbrowser: {
    service: hyperbrowser(),
    package: ['@hyperbrowser/sdk', 'Hyperbrowser', 'baseUrl'],
    operations: {
      create: {
        theirs: [
          'sessions.create',
          { useStealth: true, enableWebRecording: true, enableVideoWebRecording: true },
        ],
        ours: hyperbrowser({ useStealth: true }).acquire({ ...LEASE, record: true }),
        differences: { accept: ANY_TYPE },
      },
      list: {
        theirs: ['sessions.list', { status: 'active', page: 1, limit: 1 }],
        ours: hyperbrowser().probe,
        differences: { accept: ANY_TYPE, 'content-type': NO_BODY },
      },
      release: {
        theirs: ['sessions.stop', ID],
        ours: hyperbrowser().release(ID, { pool: 'p', reuse: false }),
        differences: { accept: ANY_TYPE, 'content-type': NO_BODY },
      },
      recordings: {
        theirs: ['sessions.get', ID],
        ours: hyperbrowser().replays!.list(ID),
        differences: { accept: ANY_TYPE, 'content-type': NO_BODY },
      },
      video: {
        theirs: ['sessions.getVideoRecordingURL', ID],
        ours: videoOf(hyperbrowser(), ID).request,
        differences: { accept: ANY_TYPE, 'content-type': NO_BODY },
      },
    },
  },
  anchor: {
    service: anchor(),
    package: ['anchorbrowser', 'Anchorbrowser', 'baseURL'],
    operations: {
      create: {
        theirs: [
          'sessions.create',
          {
            browser: { headless: { active: true }, viewport: VIEWPORT },
            session: {
              initial_url: 'https://example.com/',
              recording: { active: true },
              timeout: { idle_timeout: 1, max_duration: 5 },
              tags: ['own', 'team:a'],
            },
          },
        ],
        ours: anchor({
          browser: { headless: { active: true }, viewport: VIEWPORT },
          session: { tags: ['own'], timeout: { idle_timeout: 1, max_duration: 5 } },
        }).acquire({ ...LEASE, record: true }),
        differences: { 'body.session.tags.2': NAME, 'body.session.tags.3': OWN_TAG },
      },
      list: { theirs: ['sessions.all.status'], ours: anchor().probe },
      release: {
        theirs: ['sessions.delete', ID],
        ours: anchor().release(ID, { pool: 'p', reuse: false }),
      },
      recordings: { theirs: ['sessions.recordings.list', ID], ours: anchor().replays!.list(ID) },
      video: {
        theirs: ['sessions.recordings.primary.get', ID],
        ours: videoOf(anchor(), 'r').read({ data: { items: [{ id: 'r' }] } }) as ServiceRequest,
        differences: { accept: ANY_VIDEO },
      },
    },
  },
  'browser-use': {
    service: browserUse(),
    package: ['browser-use-sdk/v3', 'BrowserUse', 'baseUrl'],
    below: '/api/v3',
    operations: {
      create: {
        theirs: [
          'browsers.create',
          {
            timeout: 30,
            proxyCountryCode: null,
            browserScreenWidth: 800,
            enableRecording: true,
            metadata: { own: '1', team: 'a' },
          },
        ],
        ours: browserUse({
          timeout: 30,
          proxyCountryCode: null,
          browserScreenWidth: 800,
          metadata: { own: '1' },
        }).acquire({ ...LEASE, record: true }),
        differences: {
          accept: ANY_TYPE,
          'body.metadata.name': NAME,
          [`body.metadata.${LEASE_TAG}`]: OWN_TAG,
        },
      },
      list: {
        theirs: ['browsers.list', { filterBy: 'active', pageSize: 100, pageNumber: 2 }],
        ours: browserUse().sessions!.list(1, 0),
        differences: { accept: ANY_TYPE },
      },
      find: {
        theirs: [
          'browsers.list',
          { filterBy: 'active', metadata: [`${LEASE_TAG}:a-lease`], pageSize: 100, pageNumber: 1 },
        ],
        ours: requestOf(browserUse().find!(LEASE)!),
        differences: { accept: ANY_TYPE },
      },
      release: {
        theirs: ['browsers.stop', ID],
        ours: browserUse().release(ID, { pool: 'p', reuse: false }),
        differences: { accept: ANY_TYPE },
      },
      'recording and video': {
        theirs: ['browsers.get', ID],
        ours: videoOf(browserUse(), ID).request,
        differences: { accept: ANY_TYPE },
      },
    },
  },
};

describe.skipIf(!isInstalled).each(Object.entries(SDKS))(
  `%s and its official package${SKIPPED}`,
  (_name, sdk) => {
    it.each(Object.entries(sdk.operations))('send the same request: %s', async (_operation, operation) => {
      const { service, below = '', package: named, key = 'apiKey', options = {} } = sdk;
      await using recorder = await startRecorder();
      const [name, className, address] = named;
      const { [className]: Client } = installed(name) as Record<string, new (options: object) => object>;
      const client = new Client!({
        [key]: TOKEN,
        [address]: recorder.url + below,
        maxRetries: 0,
        ...options,
      });
      const [method, ...parts] = operation.theirs;
      // The recorder's answer is no session.
      await call(client, method, parts).catch(() => {});
      const baseUrl = recorder.url + below;
      await using pool = new BrowserPool<object>('scrapers', { service, baseUrl, token: TOKEN });
      const isVideo = operation.differences?.['accept'] === ANY_VIDEO;
      const onContent = isVideo ? { onContent: async () => {} } : {};
      await coreOf(pool).client.send(operation.ours!, { facts: {}, ...onContent });
      const [theirs, ours] = recorder.requests;
      expect(recorder.requests).toHaveLength(2);
      expect(JSON.stringify(theirs)).toContain(TOKEN);
      for (const header of Object.values(service.headers ?? {}))
        expect(Object.values(theirs!)).toContain(header);
      const fields = Object.keys({ ...theirs, ...ours }).filter((field) => theirs![field] !== ours![field]);
      expect(fields.toSorted(), JSON.stringify({ theirs, ours }, null, 2)).toEqual(
        Object.keys(operation.differences ?? {}).toSorted(),
      );
    });
  },
);

/** Calls a method by its path. */
async function call(client: object, method: string, parts: readonly unknown[]): Promise<unknown> {
  const path = method.split('.');
  const name = path.pop()!;
  const part = path.reduce((one, key) => (one as Record<string, object>)[key]!, client);
  return (part as Record<string, (...all: readonly unknown[]) => unknown>)[name]!(...parts);
}

/** The search for a video; its `request` is also that of a service that sends the video at once. */
function videoOf(service: BrowserService, replayId: string): VideoSearch & { request: ServiceRequest } {
  const video = service.replays!.video!(ID, replayId);
  if ('find' in video) return { ...video, request: video.find };
  return { find: video, request: video, read: () => undefined };
}

/** Without the fields that only this library reads. */
function requestOf({ method, path, body }: ServiceRequest): ServiceRequest {
  return { method, path, body };
}

/** A server that records requests as fields. */
async function startRecorder() {
  const requests: Record<string, unknown>[] = [];
  const site = await Site.open(async (request, response) => {
    requests.push(await fieldsOf(request));
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  });
  return Object.assign(site, { requests });
}

const KEYS = Object.values(SDKS).flatMap(({ service: { auth, headers = {} } }) => [
  typeof auth === 'object' && 'header' in auth ? auth.header : 'authorization',
  ...Object.keys(headers),
]);

async function fieldsOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  const { pathname, searchParams } = new URL(request.url!, 'http://server');
  const { headers } = request;
  const body = await readText(request);
  const [type] = (headers['content-type'] ?? '').split(';');
  return {
    method: request.method,
    path: decodeURIComponent(pathname),
    ...Object.fromEntries([...searchParams].map(([name, value]) => [`query.${name}`, value])),
    ...Object.fromEntries(KEYS.map((name) => [name, headers[name]])),
    ...(type && { 'content-type': type }),
    accept: headers.accept,
    ...flat('body', body === '' ? undefined : jsonOf(body)),
  };
}

/** The fields of JSON, by their places. */
function flat(place: string, value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return value === undefined ? {} : { [place]: value };
  const inner = Object.entries(value).map(([key, one]) => flat(`${place}.${key}`, one));
  return inner.length === 0 ? { [place]: JSON.stringify(value) } : Object.assign({}, ...inner);
}
