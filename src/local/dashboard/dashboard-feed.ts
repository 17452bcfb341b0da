import type { WebSocket } from 'ws';
import type { FeatureContext } from '../feature.js';
import { acceptWebSocket, type Upgrade } from '../../net/accept-websocket.js';
import { readDashboard } from './dashboard-state.js';
import { ShownPages } from './shown-pages.js';
import { clock } from '../../shared/clock.js';

/** Milliseconds between a change and its message, so that a burst of changes is one message. */
const DELAY = 100;

/** Milliseconds between two thumbnails of a browser. */
const THUMBNAIL_INTERVAL = 5_000;

/** Sends the state of the pools to all open dashboards after each change. Without a dashboard, no browser is watched. */
export class DashboardFeed {
  readonly shown = new ShownPages(() => this.changed());
  readonly #context: FeatureContext;
  readonly #sockets = new Set<WebSocket>();
  #sending: NodeJS.Timeout | undefined;
  #refreshing: NodeJS.Timeout | undefined;

  constructor(context: FeatureContext) {
    this.#context = context;
  }

  /** Opens the WebSocket of a dashboard. */
  open(upgrade: Upgrade): void {
    // A dashboard sends nothing.
    acceptWebSocket(upgrade, 1024, (websocket) => this.#add(websocket));
  }

  /** Schedules a message; to be called after each event of the pools. */
  changed(): void {
    if (this.#sockets.size === 0) return;
    this.#sending ??= clock.setTimeout(() => this.#send(), DELAY).unref();
  }

  #add(socket: WebSocket): void {
    this.#sockets.add(socket);
    socket.once('close', () => this.#remove(socket));
    this.#send();
    if (this.#sockets.size === 1) void this.#refresh();
  }

  #remove(socket: WebSocket): void {
    this.#sockets.delete(socket);
    if (this.#sockets.size > 0) return;
    clock.clearTimeout(this.#refreshing);
    this.shown.watch([]);
  }

  /** Sends new thumbnails, and the history of waiting times, until the last dashboard is closed. */
  async #refresh(): Promise<void> {
    await this.shown.refresh();
    if (this.#sockets.size === 0) return;
    this.changed();
    clock.clearTimeout(this.#refreshing);
    this.#refreshing = clock.setTimeout(() => void this.#refresh(), THUMBNAIL_INTERVAL).unref();
  }

  #send(): void {
    clock.clearTimeout(this.#sending);
    this.#sending = undefined;
    if (this.#sockets.size === 0) return;
    this.shown.watch(
      [...this.#context.pools].flatMap((pool) =>
        pool.browsers.flatMap(({ process }) => process.chromium ?? []),
      ),
    );
    const state = JSON.stringify(readDashboard(this.#context, this.shown));
    for (const socket of this.#sockets) socket.send(state, () => {});
  }
}
