import type { Chromium } from '../browser/chromium.js';
import { CdpConnection } from '../browser/cdp-connection.js';
import type { FilmFrame } from './film-frames.js';
import { STUDIO_PAGE } from './studio-page.js';

/** A piece of a film as Chromium's encoder gives it out; times are in microseconds. */
export interface EncodedChunk {
  /** In base64. */
  readonly data: string;
  readonly type: 'key' | 'delta';
  readonly timestamp: number;
  readonly duration: number;
  /** With the first one. */
  readonly config?: VideoDecoderConfig;
}

/** The encoder of a Chromium, in a page of its own. */
export class StudioEncoder {
  readonly #connection: CdpConnection;
  readonly #target: unknown;
  readonly #page: string;

  private constructor(connection: CdpConnection, target: unknown, page: string) {
    this.#connection = connection;
    this.#target = target;
    this.#page = page;
  }

  static async open(chromium: Chromium): Promise<StudioEncoder> {
    // Encoders exist on loopback and https pages only; this one is Chromium's own and runs no script.
    const url = `http://127.0.0.1:${chromium.port}/json/version`;
    let onNavigated!: (there: true) => void;
    const navigated = new Promise<true>((resolve) => (onNavigated = resolve));
    const connection = await CdpConnection.open(chromium, ({ method }) => {
      if (method === 'Page.frameNavigated') onNavigated(true);
    });
    const { targetId } = await answer(connection, 'Target.createTarget', { url: 'about:blank' });
    const attached = await answer(connection, 'Target.attachToTarget', { targetId, flatten: true });
    const encoder = new StudioEncoder(connection, targetId, String(attached['sessionId']));
    await encoder.#ask('Page.enable');
    await encoder.#ask('Page.navigate', { url });
    // The document that was there before would take the script along when it goes.
    if (!(await Promise.race([navigated, connection.closed]))) throw gone();
    await encoder.#evaluate(STUDIO_PAGE);
    return encoder;
  }

  /** Begins a film with the size of this picture; returns that size. */
  async begin(jpeg: Buffer, framesPerSecond: number): Promise<{ width: number; height: number }> {
    return await this.#call('open', jpeg.toString('base64'), framesPerSecond);
  }

  async encode({ jpeg, at, duration, isKey }: FilmFrame): Promise<EncodedChunk[]> {
    return await this.#call('encode', jpeg.toString('base64'), at, duration, isKey);
  }

  /** The pieces that were still in the encoder. */
  async finish(): Promise<EncodedChunk[]> {
    return await this.#call('finish');
  }

  async close(): Promise<void> {
    await answer(this.#connection, 'Target.closeTarget', { targetId: this.#target }).catch(() => {});
    this.#connection.close();
  }

  async #call<Result>(method: string, ...args: unknown[]): Promise<Result> {
    // An error that Chromium reports itself comes without its message.
    const caught = '.then((value) => ({ value }), (error) => ({ error: String(error) }))';
    const outcome = await this.#evaluate(`studio.${method}(...${JSON.stringify(args)})${caught}`);
    const { value, error } = outcome as { value: Result; error?: string };
    if (error !== undefined) throw new Error(error);
    return value;
  }

  async #evaluate(expression: string): Promise<unknown> {
    const params = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await this.#ask('Runtime.evaluate', params);
    if (exceptionDetails) throw new Error((exceptionDetails as { text: string }).text);
    return (result as { value?: unknown }).value;
  }

  #ask(method: string, params: object = {}): Promise<Record<string, unknown>> {
    return answer(this.#connection, method, params, this.#page);
  }
}

/** Asks, and does not wait for a Chromium that has crashed. */
async function answer(
  connection: CdpConnection,
  ...command: Parameters<CdpConnection['ask']>
): Promise<Record<string, unknown>> {
  const answered = await Promise.race([connection.ask(...command), connection.closed]);
  if (!answered) throw gone();
  return answered;
}

function gone(): Error {
  return new Error('The Chromium that makes the films is gone.');
}
