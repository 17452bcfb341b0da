import { clock, delay } from '../shared/clock.js';
import { LinkedAbort, raceTimeout } from '../shared/abort.js';
import { isRecord } from '../shared/json.js';
import type { CdpClient } from '../wire/cdp-client.js';
import { withoutSecrets } from './page-events.js';
import type { TimelineEntry } from './timeline.js';

/** A browser with WebDriver BiDi only. */
export interface BidiBrowser {
  readonly bidi: CdpClient;
}

interface RecordedContextsOptions {
  /** Fewest milliseconds between pictures. */
  readonly interval: number;
  /** @param since When the page had this picture (`clock.now()`). */
  readonly onPicture: (jpeg: Buffer, since: number) => void;
  /** Adds an entry to the timeline. */
  readonly note: (kind: TimelineEntry['kind'], text: string) => void;
  /** Called when a picture is left out because the page shows what no picture may show. */
  readonly onLeftOut: () => void;
  /** CSS selectors of elements that no picture may show. */
  readonly hide: readonly string[];
}

/** Pause after a picture, as a multiple of its duration: these pictures are taken on the connection of the client. */
const PAUSE = 9;
/** Milliseconds for a picture; a page with a dialog has none. */
const TIMEOUT = 5_000;
/** Pages and frames that are looked at. The pictures of a page with more are not taken. */
const MOST_CONTEXTS = 50;
const CAPTURE = { origin: 'viewport', format: { type: 'image/jpeg', quality: 0.7 } };
/** The scripts of the page do not see this one. */
const SANDBOX = 'pooled-browser-recorder';

/** A page or a frame. */
interface Context {
  readonly context: string;
  readonly url: string;
  readonly children: readonly Context[];
}

/**
 * Emits the pictures of the page that was opened or navigated last, over WebDriver BiDi. They are taken on the connection of the
 * client, and so less often than over CDP. A page that shows what must be hidden has no pictures.
 */
export class RecordedContexts {
  readonly closed: Promise<unknown>;
  readonly #bidi: CdpClient;
  readonly #options: RecordedContextsOptions;
  readonly #over = new LinkedAbort();
  /** URLs of pages, in the order in which the pages were used. */
  #pages = new Map<string, string>();
  #last: Buffer | undefined;

  constructor({ bidi }: BidiBrowser, options: RecordedContextsOptions) {
    this.#bidi = bidi;
    this.#options = options;
    this.closed = bidi.ended;
    void bidi.ended.then(() => this.close());
    void this.#run();
  }

  /** Takes a picture now. */
  async picture(): Promise<void> {
    const since = clock.now();
    const page = await this.#latestPage();
    if (!page || (await this.#showsHidden(page))) return;
    const { data } = await this.#bidi.send('browsingContext.captureScreenshot', {
      context: page.context,
      ...CAPTURE,
    });
    const jpeg = Buffer.from(data, 'base64');
    // Between the look at the page and the picture, a field can have appeared.
    if (jpeg.length === 0 || this.#last?.equals(jpeg) || (await this.#showsHidden(page))) return;
    this.#last = jpeg;
    this.#options.onPicture(jpeg, since);
  }

  /** Emits the next picture also if it does not differ. */
  repeat(): void {
    this.#last = undefined;
  }

  close(): void {
    this.#over.abort('closed');
  }

  async #run(): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      const began = clock.now();
      // Before the client has a session, and while a page is being replaced, there is no answer.
      await raceTimeout(TIMEOUT, () => this.picture()).catch(() => {});
      const took = clock.now() - began;
      await delay(Math.max(this.#options.interval, PAUSE * took), signal).catch(() => {});
    }
  }

  /** Notes what has changed. The page that changed last is the one in use. */
  async #latestPage(): Promise<Context | undefined> {
    const { contexts } = await this.#bidi.send('browsingContext.getTree');
    const pages = contextsIn(contexts);
    const before = this.#pages;
    const [same, changed] = [new Map<string, string>(), new Map<string, string>()];
    for (const { context, url } of pages) (before.get(context) === url ? same : changed).set(context, url);
    for (const [context, url] of changed)
      this.#options.note(before.has(context) ? 'navigation' : 'page-opened', withoutSecrets(url));
    const open = new Set(pages.map(({ context }) => context));
    for (const [context, url] of before)
      if (!open.has(context)) this.#options.note('page-closed', withoutSecrets(url));
    const inOrder = [...before.keys()].filter((context) => same.has(context));
    this.#pages = new Map([...inOrder.map((context) => [context, same.get(context)!] as const), ...changed]);
    const latest = [...this.#pages.keys()].at(-1);
    return pages.find(({ context }) => context === latest);
  }

  /** Whether the page or one of its frames shows a password field, or what the option `hide` names. Also if that is unknown. */
  async #showsHidden(page: Context): Promise<boolean> {
    const all = [page];
    for (const { children } of all) all.push(...children);
    if (all.length > MOST_CONTEXTS) return true;
    const selector = JSON.stringify(['input[type=password]', ...this.#options.hide].join(','));
    const expression = `document.querySelector(${selector}) === null`;
    const looks = all.map(async ({ context }) => {
      const target = { context, sandbox: SANDBOX };
      const params = { expression, target, awaitPromise: false };
      const { result } = await this.#bidi.send('script.evaluate', params);
      return result?.value === true;
    });
    const isShown = (await Promise.all(looks)).includes(false);
    if (isShown) this.#options.onLeftOut();
    return isShown;
  }
}

/** What the browser says of its pages. Anything else is left out. */
function contextsIn(value: unknown, depth = 0): Context[] {
  if (!Array.isArray(value) || depth > MOST_CONTEXTS) return [];
  return value.filter(isRecord).flatMap(({ context, url, children }) => {
    if (typeof context !== 'string' || typeof url !== 'string') return [];
    return [{ context, url, children: contextsIn(children, depth + 1) }];
  });
}
