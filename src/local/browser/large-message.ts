import type { CdpMessage } from '../../wire/cdp-source.js';
import { excessOf, fieldsOf } from '../../shared/message-limit.js';
import { jsonOf } from '../../shared/json.js';

/** Size of a message, in bytes, from which it costs less to look for its ends than to parse it. */
const LARGE = 64 * 1024;
/** Longest field of the ends, in bytes. */
const LONGEST_END = 200;
/** Events that say to whom a session belongs. */
const OF_SESSIONS: readonly unknown[] = ['Target.attachedToTarget', 'Target.detachedFromTarget'];

/**
 * A large message of Chromium or of a client, of which only the ends are read. A page or a client decides what is in between: a list of ten
 * million lists took 12 s to parse, and all clients of all browsers waited. Parsed and written again, it would be in memory six times.
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
    const fields = fieldsOf(data);
    const [name, ...others] = ['params', 'result', 'error'].filter((one) => fields?.has(one));
    if (!fields || name === undefined || others.length > 0) return undefined;
    const ends: Record<string, unknown> = {};
    for (const field of ['id', 'method', 'sessionId']) {
      const value = fields.get(field);
      if (!value) continue;
      if (value.length > LONGEST_END) return undefined;
      ends[field] = jsonOf(String(value));
    }
    return OF_SESSIONS.includes(ends['method']) ? undefined : new LargeMessage(ends, name, fields.get(name)!);
  }

  /** Returns the message as JSON, with other ends, in parts. */
  withEnds({ sessionId, ...name }: CdpMessage): readonly Buffer[] {
    const session = sessionId === undefined ? '' : `,"sessionId":${JSON.stringify(sessionId)}`;
    const beginning = `${JSON.stringify(name).slice(0, -1)},"${this.#contentName}":`;
    return [Buffer.from(beginning), this.#content, Buffer.from(`${session}}`)];
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
