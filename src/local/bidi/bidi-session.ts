import type { BidiMapper } from 'chromium-bidi';
import type { DevToolsAddress } from '../browser/cdp-connection.js';
import type { Message } from './messages.js';
import { MapperConnection } from './mapper-connection.js';
import type { BidiLibrary } from './load-library.js';

/** One BiDi session: chromium-bidi between a client's commands and a CDP connection of its own. */
export class BidiSession {
  /** Resolves when the browser is gone, or `close` was called. */
  readonly closed: Promise<void>;
  readonly #connection: MapperConnection;
  readonly #transport: Transport;

  private constructor(connection: MapperConnection, transport: Transport) {
    this.#connection = connection;
    this.#transport = transport;
    this.closed = connection.closed;
  }

  /** Connects to the browser; what the session has to say goes to `onMessage`. It still awaits its `session.new`. */
  static async open(
    { mapper, parser }: BidiLibrary,
    browser: DevToolsAddress,
    onMessage: (message: Message) => void,
  ): Promise<BidiSession> {
    const connection = await MapperConnection.open(mapper, browser);
    const transport = new Transport(onMessage);
    try {
      await mapper.BidiServer.createAndStart(transport, connection, connection.browser, '', parser);
    } catch (error) {
      connection.close();
      throw error;
    }
    return new BidiSession(connection, transport);
  }

  /** Passes a command on. */
  send(command: Message): void {
    this.#transport.receive(command);
  }

  /** Ends the session and its CDP connection; the browser stays. */
  close(): void {
    this.#transport.close();
    this.#connection.close();
  }
}

type Handler = Parameters<BidiMapper.BidiTransport['setOnMessage']>[0];

class Transport implements BidiMapper.BidiTransport {
  #onCommand: Handler = () => {};
  #onMessage: (message: Message) => void;

  constructor(onMessage: (message: Message) => void) {
    this.#onMessage = onMessage;
  }

  setOnMessage(handler: Handler): void {
    this.#onCommand = handler;
  }

  sendMessage(message: object): void {
    this.#onMessage(message as Message);
  }

  receive(command: Message): void {
    void this.#onCommand(command as unknown as Parameters<Handler>[0]);
  }

  close(): void {
    this.#onCommand = () => {};
    this.#onMessage = () => {};
  }
}
