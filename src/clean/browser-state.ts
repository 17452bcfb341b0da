/** What a lease has done in a browser. */
export interface CleanOptions {
  /** False if the lease used only contexts of its own: the browser's own context stays untouched. */
  readonly isOwnContextUsed: boolean;
  /** Whether a client has used an HTTP login or ignored errors of certificates, or may have: no command removes what these leave. */
  readonly hasHttpLogin: boolean;
  /** All contexts that the lease made. The pages of those that it has closed can still run. */
  readonly contexts?: ReadonlySet<string> | undefined;
  /** Ids of the extensions that the lease is known to have loaded. */
  readonly extensions: ReadonlySet<string>;
  /** False for a browser that can be a person's own, with extensions of that person. */
  readonly canBeDestroyed: boolean;
}

/** What a lease is known to have left in its browser, besides what every cleaning removes. */
export interface Leftovers {
  readonly hasHttpLogin: boolean;
  readonly hasChangedWindow: boolean;
  /** What no command removes. */
  readonly permanent: readonly string[];
  readonly extensions: readonly string[];
  readonly contexts: readonly string[];
}

/** The state in which a lease leaves its browser, as far as it is known: how it must be cleaned, and what no command removes. */
export class BrowserState {
  /** Ids of the contexts that the clients of the lease have made. */
  readonly contexts = new Set<string>();
  /** What no command of WebDriver BiDi removes. */
  readonly leftOverBidi = new Set<string>();
  /** Number of the HTTP logins of the clients, also of those in contexts of the lease. */
  httpLogins = 0;
  /** The callback receives the browser's own context. */
  #isOwnContextGiven: boolean;
  #isOwnContextTouched = false;
  #hasHttpLogin = false;
  /** A window with pages of the browser's own context has changed, or may have. */
  #hasChangedWindow = false;
  readonly #permanent = new Set<string>();
  readonly #extensions = new Set<string>();
  readonly #mayReplaceOwnContext: boolean;
  readonly #onPermanent: (what: string) => void;

  /**
   * @param how Whether the callback receives the browser's own context; whether a fresh context may take its place; what is called with
   *   each thing that stays for as long as the browser runs.
   */
  constructor(how: {
    readonly isOwnContextGiven: boolean;
    readonly mayReplaceOwnContext: boolean;
    readonly onPermanent: (what: string) => void;
  }) {
    this.#isOwnContextGiven = how.isOwnContextGiven;
    this.#mayReplaceOwnContext = how.mayReplaceOwnContext;
    this.#onPermanent = how.onPermanent;
  }

  /** Something has happened in the browser's own context. */
  readonly touchOwnContext = (): void => void (this.#isOwnContextTouched = true);

  /** Returns whether a fresh context may take the place of the browser's own one, and notes that it does. */
  readonly replaceOwnContext = (): boolean => {
    if (this.#mayReplaceOwnContext) this.#isOwnContextGiven = false;
    return this.#mayReplaceOwnContext;
  };

  get isOwnContextUsed(): boolean {
    return this.#isOwnContextGiven || this.#isOwnContextTouched;
  }

  get hasChangedOwnWindow(): boolean {
    return this.#hasChangedWindow && this.isOwnContextUsed;
  }

  /** @param isInContext Its effect ends with a context of the lease. */
  noteHttpLogin(isInContext: boolean): void {
    this.httpLogins++;
    if (!isInContext) this.#hasHttpLogin = true;
  }

  readonly noteExtension = (id: string): void => void this.#extensions.add(id);

  readonly noteChangedWindow = (): void => void (this.#hasChangedWindow = true);

  /** @param what What stays for as long as the browser runs. */
  readonly notePermanent = (what: string): void => {
    this.#permanent.add(what);
    this.#onPermanent(what);
  };

  /** How to clean the browser. @param canBeDestroyed False for a browser that can be a person's own. */
  cleanOptions(canBeDestroyed: boolean): CleanOptions {
    return {
      isOwnContextUsed: this.isOwnContextUsed,
      hasHttpLogin: this.#hasHttpLogin,
      extensions: this.#extensions,
      contexts: this.contexts,
      canBeDestroyed,
    };
  }

  /** What another process needs to continue the lease. */
  get leftovers(): Leftovers {
    return {
      hasHttpLogin: this.#hasHttpLogin,
      hasChangedWindow: this.#hasChangedWindow,
      permanent: [...this.#permanent],
      extensions: [...this.#extensions],
      contexts: [...this.contexts],
    };
  }

  /** Continues with what the lease left in another process. It may have used the browser's own context. */
  continue({ hasHttpLogin, hasChangedWindow, permanent, extensions, contexts }: Leftovers): void {
    this.touchOwnContext();
    this.#hasHttpLogin = hasHttpLogin;
    this.#hasChangedWindow = hasChangedWindow;
    permanent.forEach(this.notePermanent);
    for (const id of extensions) this.#extensions.add(id);
    for (const id of contexts) this.contexts.add(id);
  }
}
