import { check, checksOf, milliseconds, optional, readOptions, type Checked } from '../../shared/options.js';

/** What a person is asked for. */
export interface HandoffOptions {
  /** What the person has to do, as text. At most 4,000 characters. */
  message: string;
  /** Time in ms until the call rejects with `HandoffTimeoutError`. Default: none. The lease may end earlier. */
  timeout?: number | undefined;
}

/** What the person answered. */
export interface HandoffAnswer {
  /** `'declined'`: the person can't do what was asked for. */
  status: 'done' | 'declined';
  /** What the person wrote; empty without a note. */
  note: string;
}

/** What a callback can ask of a person. */
export interface HandoffFacts {
  /**
   * Asks a person to use the browser, for example to log in. Opens a page on this machine that shows the browser, and emits
   * the event `handoff` with its URL. Until the answer, calls that act in the browser wait, `timeout` and `taskTimeout`
   * stand still, and recordings of this process pause. A second call waits for the first one.
   *
   * @throws `HandoffTimeoutError`; `InvalidOptionError`; the reason of `signal`; `ConnectionDroppedError`;
   *   `LeaseOverError`.
   */
  handoff(this: void, options: HandoffOptions): Promise<HandoffAnswer>;
}

/** Its events. */
export interface HandoffSteps {
  /** A person has to open `url`, which contains a secret. Everybody with the URL can use the browser until the answer. */
  handoff: { sessionId: string; url: string; message: string };
  /** The hand-off ended. `'ended'`: without an answer, by the end of the lease or of the one who has asked. */
  'handoff-answered': { sessionId: string; status: 'done' | 'declined' | 'timeout' | 'ended' };
}

/** How a hand-off ends. */
export type HandoffStatus = HandoffSteps['handoff-answered']['status'];

const LONGEST_MESSAGE = 4000;

const message = check<string>(
  `a text of 1 to ${LONGEST_MESSAGE} characters: what the person has to do`,
  (value) => typeof value === 'string' && value.trim() !== '' && value.length <= LONGEST_MESSAGE,
);

const handoffChecks = checksOf<HandoffOptions>()({
  message,
  timeout: optional(milliseconds(), Number.POSITIVE_INFINITY),
});

export type HandoffRequest = Checked<typeof handoffChecks>;

/** @throws InvalidOptionError */
export function readHandoff(options: unknown): HandoffRequest {
  return readOptions(handoffChecks, options, 'handoff');
}
