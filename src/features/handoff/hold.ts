import type { AnyClient, Answer, Command, EventHandler, Layer } from '../../wire/layer.js';

/** Most commands that wait: a client could fill the memory. */
const MOST = 10_000;

/**
 * Commands of CDP and WebDriver BiDi that act in a page, read what the person types there, or take the page away. For others, such as those
 * that set up a new page, the browser itself waits.
 */
const ACTING = new RegExp(
  `^(?:${[
    String.raw`Input\.(?!set)\w+`,
    String.raw`Page\.(?:captureScreenshot|printToPDF|navigate|navigateToHistoryEntry|reload|stopLoading|close|crash|setDocumentContent|handleJavaScriptDialog|bringToFront)`,
    String.raw`Target\.(?:createTarget|closeTarget|activateTarget|disposeBrowserContext|sendMessageToTarget)`,
    String.raw`Browser\.(?:close|crash|crashGpuProcess)`,
    String.raw`DOM\.(?:setFileInputFiles|focus|set(?:AttributeValue|AttributesAsText|NodeValue|OuterHTML)|removeNode|scrollIntoViewIfNeeded)`,
    String.raw`Runtime\.(?:evaluate|callFunctionOn|runScript)`,
    String.raw`input\.\w+`,
    String.raw`browsingContext\.(?:captureScreenshot|print|create|navigate|reload|close|traverseHistory|activate|handleUserPrompt)`,
    String.raw`script\.(?:evaluate|callFunction)`,
    String.raw`browser\.(?:close|removeUserContext)`,
  ].join('|')})$`,
);

/** The end of a press that has begun before. */
const RELEASES = new Set(['mouseReleased', 'keyUp', 'touchEnd', 'touchCancel']);

interface Held {
  readonly client: AnyClient;
  readonly sessionId: string | undefined;
  readonly send: () => void;
}

/** What is open in a page, which the client learns of if it is still open at the end. */
interface Unanswered {
  readonly client: AnyClient;
  readonly targetId: string | undefined;
  readonly deliver: () => unknown;
}

/**
 * Keeps the clients from acting and looking while a person uses the browser. Their commands wait, and are sent in their order at the end. The
 * person answers the dialogs and chooses the files of pages, so the clients receive no event about these.
 */
export class Hold {
  readonly #held: Held[] = [];
  /** By client and session. */
  readonly #dialogs = new Map<string, Unanswered>();
  #choosers: Unanswered[] = [];
  readonly #clients = new Map<AnyClient, number>();

  readonly layer: Layer = {
    name: 'handoff',
    commands: { '*': (command, next) => this.#pass(command, next) },
    events: {
      'Page.javascriptDialogOpening': (event, next) => this.#openDialog(event, next),
      'Page.javascriptDialogClosed': (event, next) => this.#closeDialog(event, next),
      'browsingContext.userPromptOpened': (event, next) => this.#openDialog(event, next),
      'browsingContext.userPromptClosed': (event, next) => this.#closeDialog(event, next),
      'Page.fileChooserOpened': (event, next) => this.#openChooser(event, next),
      // Only without the picture: Chromium sends few frames that no client acknowledges.
      'Page.screencastFrame': (_event, next) => next({ data: '' }),
      'input.fileDialogOpened': (event, next) => this.#openChooser(event, next),
    },
  };

  /** The person has chosen files in this page, or none. */
  forgetFiles(targetId: string): void {
    this.#choosers = this.#choosers.filter((one) => one.targetId !== targetId);
  }

  /** Sends what waits. @param isOver The lease has ended: nothing may reach its browser. */
  end({ isOver }: { isOver: boolean }): void {
    if (isOver) return;
    for (const { deliver } of [...this.#dialogs.values(), ...this.#choosers]) void deliver();
    for (const { send } of this.#held) send();
  }

  #pass(command: Command, next: () => Promise<Answer>): Promise<Answer> {
    const { client, sessionId } = command;
    const isWaiting = () => this.#held.some((one) => one.client === client && one.sessionId === sessionId);
    if (!isActing(command) || (isRelease(command) && !isWaiting())) return next();
    if (this.#held.length >= MOST) throw new Error('A person uses the browser, and too many commands wait.');
    return new Promise((resolve) => {
      this.#held.push({ client, sessionId, send: () => resolve(next()) });
    });
  }

  readonly #openDialog: EventHandler = (event, next) => {
    this.#dialogs.set(this.#keyOf(event), unanswered(event, next));
  };

  readonly #closeDialog: EventHandler = (event, next) =>
    // One from before the hand-off is closed for the client, too.
    this.#dialogs.delete(this.#keyOf(event)) ? undefined : next();

  readonly #openChooser: EventHandler = (event, next) => {
    this.#choosers.push(unanswered(event, next));
  };

  #keyOf({ client, sessionId, params }: Parameters<EventHandler>[0]): string {
    const number = this.#clients.get(client) ?? this.#clients.size;
    this.#clients.set(client, number);
    return `${number} ${sessionId ?? contextOf(params)}`;
  }
}

function unanswered(
  { client, session, params }: Parameters<EventHandler>[0],
  deliver: () => unknown,
): Unanswered {
  return { client, targetId: session?.target.id ?? contextOf(params), deliver };
}

/** Returns the context of WebDriver BiDi: in Chromium, the id of the target. */
function contextOf(params: object): string | undefined {
  const { context } = params as { context?: unknown };
  return typeof context === 'string' ? context : undefined;
}

function isActing({ method, params }: Command): boolean {
  if (method !== 'goog:cdp.sendCommand') return ACTING.test(method);
  const { method: inner } = params as { method?: unknown };
  return typeof inner === 'string' && ACTING.test(inner);
}

function isRelease({ method, params }: Command): boolean {
  const { type } = params as { type?: unknown };
  if (method === 'input.releaseActions') return true;
  return /^Input\.dispatch(?:Mouse|Key|Touch)Event$/.test(method) && RELEASES.has(String(type));
}
