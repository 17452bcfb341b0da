import type { PicturedBrowser } from '../../recorder/pictures.js';
import { CdpSession, type CdpClient } from '../../wire/cdp-client.js';
import type { EventParams } from '../../wire/layer.js';
import { chooseOption, fillFiles, findOptions, type ChosenFile, type PageOptions } from './page-inputs.js';

/** What a page asks the person, which no picture shows or no click answers. */
export type Question =
  | {
      readonly kind: 'dialog';
      readonly id: string;
      /** `alert`, `confirm`, `prompt` or `beforeunload`. */
      readonly type: string;
      readonly message: string;
      readonly value: string;
    }
  | { readonly kind: 'files'; readonly id: string; readonly isMultiple: boolean }
  | ({ readonly kind: 'options'; readonly id: string } & PageOptions);

interface Asked {
  readonly question: Question;
  readonly session: CdpSession;
  /** The input of a file chooser. */
  readonly input?: EventParams<'Page.fileChooserOpened'>;
  /** The frame of a list. */
  readonly frameId?: string;
}

/** A session of a page, or of a frame of another site. */
interface Part {
  readonly session: CdpSession;
  readonly targetId: string;
  /** The page itself, or the one that contains the frame. */
  readonly page: string;
}

const FILTER = [{ type: 'page' }, { type: 'iframe' }, { exclude: true }];
const MOST_QUESTIONS = 100;
/** Most levels of frames in frames that are read. */
const MOST_LEVELS = 20;
const LONGEST = 4000;

/** The dialogs, file choosers and lists of all pages, over a connection of our own. */
export class PageQuestions {
  readonly #onFiles: (targetId: string) => void;
  readonly #parts = new Map<string, Part>();
  readonly #asked = new Map<string, Asked>();
  #cdp: CdpClient | undefined;
  #count = 0;
  /** The pages that are being read, and whether something has happened there meanwhile. */
  readonly #looking = new Map<string, boolean>();
  #isClosed = false;
  readonly #listeners = new Set<() => void>();

  /** @param onFiles Called with the id of a page whose file chooser was answered. */
  constructor(onFiles: (targetId: string) => void) {
    this.#onFiles = onFiles;
  }

  async open(source: PicturedBrowser['source']): Promise<void> {
    const cdp = await source({
      'Target.attachedToTarget': ({ sessionId, targetInfo: { targetId } }, above) =>
        this.#prepare(new CdpSession(cdp, sessionId), targetId, this.#parts.get(above ?? '')),
      'Target.detachedFromTarget': ({ sessionId }) => this.#forget(sessionId),
      'Page.javascriptDialogOpening': (dialog, id) => this.#onDialog(dialog, this.#parts.get(id ?? '')),
      'Page.javascriptDialogClosed': (_closed, id) => this.#remove(`dialog ${id}`),
      'Page.fileChooserOpened': (input, id) => this.#onChooser(input, this.#parts.get(id ?? '')),
      'Page.frameNavigated': ({ frame: { id } }) => this.#onNavigated(id),
    });
    this.#cdp = cdp;
    if (this.#isClosed) return cdp.close();
    await cdp.send('Target.setAutoAttach', attaching([{ type: 'page' }, { exclude: true }]));
  }

  /** Ends the questions. A dialog that is open stays open: Chromium would cancel it with the session that has seen it. */
  close(): void {
    this.#isClosed = true;
    for (const { session } of this.#parts.values())
      session.send('Page.setInterceptFileChooserDialog', { enabled: false });
    this.#closeIfUnused();
  }

  /** Closes the connection at once. */
  cut(): void {
    this.#cdp?.close();
  }

  #closeIfUnused(): void {
    const isUsed = this.list.some(({ kind }) => kind === 'dialog');
    if (this.#isClosed && !isUsed) this.#cdp?.close();
  }

  /** The questions that wait, the oldest first. */
  get list(): readonly Question[] {
    return [...this.#asked.values()].map(({ question }) => question);
  }

  /** Calls a function when the list has changed, until the returned function is called. */
  onChange(call: () => void): () => void {
    this.#listeners.add(call);
    return () => void this.#listeners.delete(call);
  }

  async answerDialog(id: string, accept: boolean, promptText: string): Promise<void> {
    const asked = this.#asked.get(id);
    if (asked?.question.kind !== 'dialog') return;
    this.#remove(id);
    await asked.session.ask('Page.handleJavaScriptDialog', {
      accept,
      ...(accept && asked.question.type === 'prompt' && { promptText }),
    });
  }

  /** Fills the input of a file chooser. Without files, it stays as it is. */
  async answerFiles(id: string, files: readonly ChosenFile[]): Promise<void> {
    const asked = this.#asked.get(id);
    const { input, session } = asked ?? {};
    if (!asked || !input || !session) return;
    this.#asked.set(id, { question: asked.question, session });
    this.#onFiles(this.#parts.get(session.id)?.targetId ?? '');
    try {
      if (files.length > 0) await fillFiles(session, input, files);
    } finally {
      this.#remove(id);
    }
  }

  async choose(id: string, index: number): Promise<void> {
    const asked = this.#asked.get(id);
    if (asked?.question.kind !== 'options') return;
    await chooseOption(asked.session, asked.frameId!, index);
    await this.look(this.#parts.get(asked.session.id)?.page ?? '');
  }

  /** Looks whether a list of options has the focus in a page. Chromium draws the options, and passes no click on to them. */
  async look(pageId: string): Promise<void> {
    // A page with a dialog answers later.
    if (this.#looking.has(pageId)) return void this.#looking.set(pageId, true);
    do {
      this.#looking.set(pageId, false);
      await this.#findOptions(pageId);
    } while (this.#looking.get(pageId));
    this.#looking.delete(pageId);
  }

  async #findOptions(pageId: string): Promise<void> {
    let session: CdpSession | undefined;
    let frameId = pageId;
    let found: PageOptions | string | undefined = pageId;
    for (let level = 0; typeof found === 'string' && level < MOST_LEVELS; level++) {
      frameId = found;
      // A frame of the same process has no session of its own.
      session = [...this.#parts.values()].find(({ targetId }) => targetId === frameId)?.session ?? session;
      found = session && (await findOptions(session, frameId).catch(() => undefined));
    }
    for (const [id, { question }] of this.#asked) if (question.kind === 'options') this.#asked.delete(id);
    if (session && found && typeof found !== 'string') {
      const id = `options ${session.id}`;
      this.#asked.set(id, { question: { kind: 'options', id, ...found }, session, frameId });
    }
    this.#changed();
  }

  #prepare(session: CdpSession, targetId: string, above: Part | undefined): void {
    this.#parts.set(session.id, { session, targetId, page: above?.page ?? targetId });
    session.send('Page.enable');
    session.send('Page.setInterceptFileChooserDialog', { enabled: true });
    session.send('Target.setAutoAttach', attaching(FILTER));
  }

  #forget(sessionId = ''): void {
    this.#parts.delete(sessionId);
    for (const [id, { session }] of this.#asked) if (session.id === sessionId) this.#remove(id);
  }

  #onDialog({ type, message, defaultPrompt = '' }: EventParams<'Page.javascriptDialogOpening'>, part?: Part) {
    if (!part) return;
    const id = `dialog ${part.session.id}`;
    const texts = { message: message.slice(0, LONGEST), value: defaultPrompt.slice(0, LONGEST) };
    this.#add({ question: { kind: 'dialog', id, type, ...texts }, session: part.session });
  }

  #onChooser(input: EventParams<'Page.fileChooserOpened'>, part?: Part): void {
    if (!part) return;
    const isMultiple = input.mode === 'selectMultiple';
    const id = `files ${++this.#count}`;
    // A page has one file chooser at a time.
    for (const [other, { question, session }] of this.#asked)
      if (question.kind === 'files' && session === part.session) this.#asked.delete(other);
    this.#add({ question: { kind: 'files', id, isMultiple }, session: part.session, input });
  }

  /** The questions of the page before end with it. */
  #onNavigated(frameId: string): void {
    for (const [id, { session, input }] of this.#asked) {
      const { targetId } = this.#parts.get(session.id) ?? {};
      if (id.startsWith('dialog')) continue;
      if (targetId === frameId || input?.frameId === frameId) this.#remove(id);
    }
  }

  #add(asked: Asked): void {
    if (this.#asked.size < MOST_QUESTIONS) this.#asked.set(asked.question.id, asked);
    this.#changed();
  }

  #remove(id: string): void {
    if (this.#asked.delete(id)) this.#changed();
    this.#closeIfUnused();
  }

  #changed(): void {
    for (const call of this.#listeners) call();
  }
}

function attaching(filter: readonly object[]): object {
  return { autoAttach: true, waitForDebuggerOnStart: false, flatten: true, filter };
}
