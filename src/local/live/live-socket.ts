import type { WebSocket } from 'ws';
import type { DevToolsAddress } from '../browser/cdp-connection.js';
import type { LiveMessage, LiveMode } from '../pages/messages.js';
import { LiveView } from './live-view.js';
import { readCommand } from './read-command.js';

/** Close codes of the websocket protocol. */
const GOING_AWAY = 1001;
const SERVER_ERROR = 1011;

/** The websocket of one viewer: pictures and tabs out, commands in. */
export class LiveSocket {
  readonly #socket: WebSocket;
  readonly #view: Promise<LiveView>;

  constructor(socket: WebSocket, browser: DevToolsAddress, mode: Promise<LiveMode>) {
    this.#socket = socket;
    this.#view = this.#open(browser, mode);
    this.#view.then(
      (view) => void view.closed.then(() => this.cut()),
      () => this.#end(SERVER_ERROR, 'The browser does not answer.'),
    );
    socket.on('message', (data: Buffer, isBinary) => void this.#receive(data, isBinary));
    socket.once('close', () => void this.#view.then((view) => view.close()).catch(() => {}));
    socket.on('error', () => socket.terminate());
  }

  /** The lease has ended: from now on nothing of the browser is seen, and no command reaches it. */
  cut(): void {
    void this.#view.then((view) => view.close()).catch(() => {});
    this.#end(GOING_AWAY, 'The session has ended.');
  }

  async #open(browser: DevToolsAddress, found: Promise<LiveMode>): Promise<LiveView> {
    const tell = (message: LiveMessage) => this.#socket.send(JSON.stringify(message), () => {});
    const mode = await found;
    tell({ type: 'mode', ...mode });
    const { readOnly } = mode;
    return await LiveView.open(browser, { tell, show: (picture) => this.#show(picture), readOnly });
  }

  async #receive(data: Buffer, isBinary: boolean): Promise<void> {
    const command = isBinary ? undefined : readCommand(data.toString());
    try {
      // What is no command is dropped; what fails, such as a key in a page that just closed, is the person's to repeat.
      if (command) await (await this.#view).obey(command);
    } catch {}
  }

  #show(picture: Buffer): Promise<void> {
    return new Promise((resolve) => this.#socket.send(picture, () => resolve()));
  }

  #end(code: number, reason: string): void {
    this.#socket.close(code, reason);
    // A browser that does not answer the close frame must not hold the socket.
    setTimeout(() => this.#socket.terminate(), 500).unref();
  }
}
