import type { AnyClient } from './forms.js';
import type { CommandParams } from './message.js';
import type { Session, Sessions } from './sessions.js';

/** Which types of targets a client attaches to by itself. */
type Filter = NonNullable<CommandParams<'Target.setAutoAttach'>['filter']>;
/** Where a client has asked for it: in its connection itself, or in a session. */
type Place = AnyClient | Session;

/** The filter that Chromium uses if a client names none. */
const USUAL: Filter = [{ type: 'browser', exclude: true }, { type: 'tab', exclude: true }, {}];

/** Which clients attach to which new targets by themselves, and let them wait (`Target.setAutoAttach`). */
export class AutoAttach {
  readonly #sessions: Sessions;
  readonly #clients = new Set<AnyClient>();
  /** What is asked for in a session ends with it. */
  readonly #filters = new WeakMap<Place, Filter>();

  readonly #onLess: () => void;

  /** @param onLess Called when a client lets fewer targets wait. */
  constructor(sessions: Sessions, onLess: () => void) {
    this.#sessions = sessions;
    this.#onLess = onLess;
  }

  /** A client lets new targets wait from now on. */
  begin(client: AnyClient, session: Session | undefined, filter = USUAL): void {
    this.#filters.set(session ?? client, filter);
    if (this.#clients.has(client)) return;
    this.#clients.add(client);
    void client.detached.then(() => {
      this.#clients.delete(client);
      this.#onLess();
    });
  }

  /** New targets do not wait for a client any longer. */
  end(client: AnyClient, session: Session | undefined): void {
    this.#filters.delete(session ?? client);
    this.#onLess();
  }

  /**
   * Returns the clients that let new targets of a type wait.
   *
   * @param below The id of the page, frame or worker to which they belong. Undefined for the whole browser.
   */
  clientsOf(type: string, below: string | undefined): readonly AnyClient[] {
    const admitted = (place: Place) =>
      belowOf(place) === below && admits(this.#filters.get(place) ?? [], type);
    return [...this.#clients].filter((client) => [client, ...this.#sessions.all(client)].some(admitted));
  }
}

/** The id of the page, frame or worker of a session. Undefined for those of the whole browser. */
export function belowOf(place: Place | undefined): string | undefined {
  const target = place && 'target' in place ? place.target : undefined;
  return target && !/^(browser|tab)$/.test(target.type) ? target.id : undefined;
}

function admits(filter: Filter, type: string): boolean {
  const admitsType = (one: string) => {
    const entry = filter.find((each) => each.type === undefined || each.type === one);
    return entry !== undefined && entry.exclude !== true;
  };
  // A client can also attach to the tab of a page, and then to the page.
  return admitsType(type) || (type === 'page' && admitsType('tab'));
}
