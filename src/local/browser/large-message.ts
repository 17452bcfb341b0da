import type { CdpMessage } from '../../wire/cdp-source.js';
import { excessOf, isBalanced } from '../../shared/message-limit.js';

/** Size of a message, in bytes, from which it costs less to look for its ends than to parse it. */
const LARGE = 64 * 1024;
const LONGEST_MARGIN = 200;
const BEGINNING = /^\{"(?:id":(\d+),"(result|error)|method":"([\w.]+)","(params))":(?=\{)/;
const END = /(?<=\})(?:,"sessionId":"([\w-]+)")?\}$/;
/** Events that say to whom a session belongs. */
const OF_SESSIONS = ['Target.attachedToTarget', 'Target.detachedFromTarget'];

/**
 * A large message of Chromium, of which only the ends are read. A page decides what is in between: a list of ten million lists took 12 s to
 * parse, and all clients of all browsers waited.
 */
export class LargeMessage {
  /** The message without its content. */
  readonly ends: CdpMessage;
  readonly #contentName: string;
  readonly #content: Buffer;

  private constructor(ends: CdpMessage, contentName: string, content: Buffer) {
    this.ends = ends;
    this.#contentName = contentName;
    this.#content = content;
  }

  /** Returns undefined for a message that must be parsed. */
  static read(data: Buffer): LargeMessage | undefined {
    if (data.length < LARGE) return undefined;
    const beginning = BEGINNING.exec(data.toString('latin1', 0, LONGEST_MARGIN));
    const end = END.exec(data.toString('latin1', data.length - LONGEST_MARGIN));
    if (!beginning || !end || OF_SESSIONS.includes(beginning[3]!)) return undefined;
    const content = data.subarray(beginning[0].length, data.length - end[0].length);
    // Otherwise the content could name the fields of the ends again.
    if (!isBalanced(content.subarray(1, -1))) return undefined;
    const [, id, outcome, method, params] = beginning;
    const name = id === undefined ? { method } : { id: Number(id) };
    const session = end[1] === undefined ? {} : { sessionId: end[1] };
    return new LargeMessage({ ...name, ...session }, (outcome ?? params)!, content);
  }

  /** Returns the message as JSON, with other ends. */
  withEnds({ sessionId, ...name }: CdpMessage): Buffer {
    const session = sessionId === undefined ? '' : `,"sessionId":${JSON.stringify(sessionId)}`;
    const beginning = `${JSON.stringify(name).slice(0, -1)},"${this.#contentName}":`;
    return Buffer.concat([Buffer.from(beginning), this.#content, Buffer.from(`${session}}`)]);
  }

  /**
   * Parses the message, with other ends. In place of a content above the limit of a client's message, a response has an error.
   *
   * @returns Undefined for an event above the limit.
   */
  parsed(ends: CdpMessage): CdpMessage | undefined {
    const excess = excessOf(this.#content);
    if (excess === undefined) return { ...ends, [this.#contentName]: JSON.parse(String(this.#content)) };
    return 'id' in ends ? { ...ends, error: { code: -32_000, message: excess } } : undefined;
  }
}
