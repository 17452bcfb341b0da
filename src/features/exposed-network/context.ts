import type { CdpClient } from '../../connect/cdp-client.js';
import type { StandIns } from '../../connect/stand-ins.js';
import type { PageStarts } from '../../connect/page-starts.js';
import type { Bodies } from './body-reader.js';
import type { BrowserClients } from './browser-clients.js';
import type { EventStreams } from './exposed-events.js';
import type { ExposedHosts } from './exposed-hosts.js';
import type { ExposedSender } from './exposed-request.js';
import type { RequestBodies } from './request-bodies.js';
import type { Targets } from './targets.js';

/** What answers the requests of a browser over one WebSocket. All but three last as long as the lease. */
export interface Context {
  readonly cdp: CdpClient;
  readonly targets: Targets;
  /** Aborts when the WebSocket has ended. */
  readonly signal: AbortSignal;
  readonly hosts: ExposedHosts;
  readonly sender: ExposedSender;
  readonly bodies: Bodies;
  readonly uploads: RequestBodies;
  readonly clients: BrowserClients;
  readonly starts: PageStarts;
  readonly standIns: StandIns;
  readonly events: EventStreams;
  /** What runs in pages and workers before their own scripts. */
  readonly script: string;
  /** Aborts at the end of the lease. */
  readonly lease: AbortSignal;
  /** Called with each exposed host, and its port, that is requested. */
  onRequest(this: void, host: string): void;
}
