import type { CdpClient } from '../../wire/cdp-client.js';
import type { Opening } from '../../drivers/extension.js';
import type { PlaceholderFiles } from '../placeholder-files.js';
import type { Bodies } from './response-bodies.js';
import type { BrowserClients } from './browser-clients.js';
import type { EventStreams } from './exposed-events.js';
import type { ExposedHosts } from './exposed-hosts.js';
import type { ExposedSender } from './exposed-request.js';
import type { RequestBodies } from './request-bodies.js';
import type { Targets } from './targets.js';

/** What a connection exposes. */
export interface ExposePlan extends Opening {
  readonly hosts: ExposedHosts;
  /** Files of this machine that the browser downloads. */
  readonly placeholders: PlaceholderFiles;
  /** Called with each exposed host, and its port, that is requested. */
  readonly onRequest: (host: string) => void;
}

/** What lasts as long as the connection. */
export interface ExposedConnection extends ExposePlan {
  /** What clients have set, and what they see. */
  readonly clients: BrowserClients;
  readonly sender: ExposedSender;
  readonly bodies: Bodies;
  readonly uploads: RequestBodies;
  readonly events: EventStreams;
  /** What runs in pages and workers before their own scripts. */
  readonly script: string;
  /** Aborts at the end of the connection. */
  readonly end: AbortSignal;
}

/** What lasts as long as one WebSocket to the browser. */
export interface Context extends ExposedConnection {
  readonly cdp: CdpClient;
  readonly targets: Targets;
  /** Aborts at the end of the WebSocket. */
  readonly signal: AbortSignal;
}
