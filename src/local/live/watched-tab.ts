import type { CdpConnection, CdpEvent } from '../browser/cdp-connection.js';
import { startScreencast } from '../browser/start-screencast.js';

/** Where pictures go. */
export interface Screen {
  /** Called before the first picture, and when the page's size changes; in CSS pixels. */
  readonly resize: (width: number, height: number) => void;
  /** Shows a JPEG; resolves when there is room for the next one. */
  readonly show: (picture: Buffer) => Promise<void>;
}

const CAST = { format: 'jpeg', quality: 75, maxWidth: 1920, maxHeight: 1440 };

/** The tab that a viewer sees: its pictures, as Chromium draws them, and commands to it. */
export class WatchedTab {
  readonly targetId: string;
  readonly #connection: CdpConnection;
  readonly #screen: Screen;
  readonly #session: Promise<string>;
  #sessionId: string | undefined;
  #size = '';

  constructor(connection: CdpConnection, targetId: string, screen: Screen) {
    this.#connection = connection;
    this.targetId = targetId;
    this.#screen = screen;
    this.#session = this.#start();
    // A page that is gone meanwhile has no pictures.
    this.#session.catch(() => {});
  }

  /** Sends a command to the page. */
  async ask(method: string, params?: object): Promise<Record<string, unknown>> {
    return await this.#connection.ask(method, params, await this.#session);
  }

  take({ method, params, sessionId }: CdpEvent): void {
    if (method !== 'Page.screencastFrame' || sessionId !== this.#sessionId) return;
    this.#resize(params['metadata'] as { deviceWidth: number; deviceHeight: number });
    const picture = Buffer.from(String(params['data']), 'base64');
    // Chromium sends no further picture before this: a slow viewer gets fewer, not older ones.
    const acknowledge = () => this.ask('Page.screencastFrameAck', { sessionId: params['sessionId'] });
    void this.#screen
      .show(picture)
      .then(acknowledge)
      .catch(() => {});
  }

  stop(): void {
    const detach = (sessionId: string) => this.#connection.ask('Target.detachFromTarget', { sessionId });
    void this.#session.then(detach).catch(() => {});
  }

  async #start(): Promise<string> {
    const params = { targetId: this.targetId, flatten: true };
    const { sessionId } = await this.#connection.ask('Target.attachToTarget', params);
    this.#sessionId = String(sessionId);
    await this.#connection.ask('Page.enable', {}, this.#sessionId);
    // Commands need not wait for pictures.
    startScreencast((method, cast) => this.ask(method, cast), CAST).catch(() => {});
    return this.#sessionId;
  }

  #resize({ deviceWidth, deviceHeight }: { deviceWidth: number; deviceHeight: number }): void {
    const size = `${deviceWidth}x${deviceHeight}`;
    if (size === this.#size) return;
    this.#size = size;
    this.#screen.resize(deviceWidth, deviceHeight);
  }
}
