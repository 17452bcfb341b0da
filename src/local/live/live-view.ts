import { CdpConnection, type CdpEvent, type DevToolsAddress } from '../browser/cdp-connection.js';
import type { LiveCommand, LiveMessage } from '../pages/messages.js';
import { drive } from './drive.js';
import { WatchedTab, type Screen } from './watched-tab.js';
import { Tabs } from './tabs.js';

/** Where a live view is shown. */
export interface Viewer {
  readonly tell: (message: LiveMessage) => void;
  readonly show: Screen['show'];
  /** Refuses every command that would change anything in the browser. */
  readonly readOnly: boolean;
}

/** One viewer's live view of a browser, on a CDP connection of its own: the client's never notices. */
export class LiveView {
  readonly #viewer: Viewer;
  readonly #tabs = new Tabs();
  #connection!: CdpConnection;
  #tab: WatchedTab | undefined;
  /** The tab that the viewer chose; until then, the newest is shown. */
  #chosen: string | undefined;

  private constructor(viewer: Viewer) {
    this.#viewer = viewer;
  }

  static async open(browser: DevToolsAddress, viewer: Viewer): Promise<LiveView> {
    const view = new LiveView(viewer);
    view.#connection = await CdpConnection.open(browser, (event) => view.#take(event));
    const filter = [{ type: 'page' }, { exclude: true }];
    await view.#connection.ask('Target.setDiscoverTargets', { discover: true, filter });
    return view;
  }

  /** Resolves when the browser is gone. */
  get closed(): Promise<void> {
    return this.#connection.closed;
  }

  close(): void {
    this.#connection.close();
  }

  /** Does what the viewer wants, as far as it may. */
  async obey(command: LiveCommand): Promise<void> {
    if (command.type === 'watch') return this.#watch(command.id);
    if (this.#viewer.readOnly || !this.#tab) return;
    const tab = this.#tab;
    await drive((method, params) => tab.ask(method, params), command);
  }

  #take(event: CdpEvent): void {
    this.#tab?.take(event);
    if (!this.#tabs.take(event)) return;
    if (this.#chosen !== undefined && !this.#tabs.has(this.#chosen)) this.#chosen = undefined;
    this.#show(this.#chosen ?? this.#tabs.newest);
  }

  #watch(id: string): void {
    if (!this.#tabs.has(id)) return;
    this.#chosen = id;
    this.#show(id);
    // A tab in the background of a window draws nothing. Who only watches may not bring it to the front.
    if (!this.#viewer.readOnly)
      void this.#connection.ask('Target.activateTarget', { targetId: id }).catch(() => {});
  }

  #show(id: string | undefined): void {
    if (id !== this.#tab?.targetId) {
      this.#tab?.stop();
      this.#tab = id === undefined ? undefined : this.#watchedTab(id);
    }
    this.#viewer.tell({ type: 'tabs', tabs: this.#tabs.list, current: id });
  }

  #watchedTab(id: string): WatchedTab {
    const resize = (width: number, height: number) => this.#viewer.tell({ type: 'size', width, height });
    return new WatchedTab(this.#connection, id, { resize, show: this.#viewer.show });
  }
}
