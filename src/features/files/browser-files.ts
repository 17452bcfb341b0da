import { open, rename, rm } from 'node:fs/promises';
import { onAbort, raceAbort } from '../../shared/abort.js';
import { isRecord } from '../../shared/json.js';
import { lazy } from '../../shared/lazy.js';
import { CdpClient, type OpenCdp } from '../../wire/cdp-client.js';
import type { EventParams, ResultOf } from '../../wire/layer.js';
import { namingFile } from '../../shared/naming-file.js';

/** Bytes that the page reads at once, and how many of such parts are under way: a distant browser answers late. */
const PART = 512 * 1024;
const PARTS_UNDER_WAY = 4;

/** These functions run in the blank page. `this` is its `<input type=file>`. */
const NEW_INPUT = `(() => { const input = document.createElement('input'); input.type = 'file'; return input; })()`;
const LOOK = `function () {
  const { size = 0, lastModified = 0 } = this.files[0] ?? {};
  return { size, lastModified };
}`;
const READ = `async function (from, to) {
  const reader = new FileReader();
  const read = new Promise((resolve, reject) => {
    reader.onload = resolve;
    reader.onerror = () => reject(reader.error);
  });
  reader.readAsDataURL(this.files[0].slice(from, to));
  await read;
  return reader.result.slice(reader.result.indexOf(',') + 1);
}`;
const ADD = `async function (part, base64) {
  const response = await fetch('data:application/octet-stream;base64,' + base64);
  (this.parts ??= [])[part] = await response.blob();
}`;
/** The type keeps Chromium from adding an ending to the name. */
const SAVE = `function (name) {
  const link = document.createElement('a');
  link.download = name;
  link.href = URL.createObjectURL(new Blob(this.parts ?? [], { type: 'application/octet-stream' }));
  link.click();
}`;

/** What the files need from the connection. */
interface FilesPlan {
  readonly open: OpenCdp;
  /** Called with the id of a context that no library may see, before it has a page. */
  hide(targetOrContext: string): void;
  /** Receive the downloads of others that this WebSocket reports. */
  onBegun(params: EventParams<'Browser.downloadWillBegin'>): void;
  onProgress(params: Progress): void;
}

interface BlankPage {
  readonly sessionId: string;
  readonly browserContextId: string;
}

type Progress = EventParams<'Browser.downloadProgress'>;

/**
 * Reads and writes files of the browser's machine, over a WebSocket of our own and through a blank page in a context of its own. The
 * WebSocket is opened when it is first needed.
 */
export class BrowserFiles {
  readonly #plan: FilesPlan;
  readonly #closed = new AbortController();
  readonly #connect = lazy(() => this.#openSocket());
  /** The id of the blank page's own download, and what waits for its end. */
  #saving: string | undefined;
  #onSaved: (event: Progress) => void = () => {};
  #page: Promise<BlankPage> | undefined;
  #pageId: string | undefined;
  /** Files are saved one after the other. */
  #lastSave: Promise<unknown> = Promise.resolve();
  #isOpen = false;

  constructor(plan: FilesPlan) {
    this.#plan = plan;
  }

  /** Whether the WebSocket is open. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  async open(): Promise<void> {
    await this.#connect();
  }

  /** Sends a command of the browser. */
  async send<Method extends string>(method: Method, params: object): Promise<ResultOf<Method>> {
    return (await this.#connect()).send(method, params);
  }

  /** Closes the blank page with its context. */
  async closePage(): Promise<void> {
    const page = await this.#page;
    this.#page = undefined;
    if (page) await this.send('Target.disposeBrowserContext', { browserContextId: page.browserContextId });
  }

  /** Closes the WebSocket: what is under way fails. The browser closes the blank page. */
  close(): void {
    this.#closed.abort(new Error('The connection to the browser was closed.'));
  }

  /**
   * Copies a file of the browser's machine. The new file appears when it is complete.
   *
   * @param check Called with the size in bytes; throws to refuse it.
   * @param onPart Called with the number of bytes that were copied so far.
   * @returns The size in bytes.
   */
  async copy(
    from: string,
    to: string,
    { check, onPart }: { check: (size: number) => void; onPart: (copied: number) => void },
  ): Promise<number> {
    const { read, size } = await this.#openFile(from);
    check(size);
    const part = `${to}.part`;
    const file = await open(part, 'wx', 0o600);
    try {
      let copied = 0;
      const begin = (start: number) => read(start, Math.min(start + PART, size));
      await eachPart(size, begin, async (text) => {
        const bytes = Buffer.from(text, 'base64');
        copied += bytes.length;
        // A peer can send more than it was asked for.
        if (copied > size) throw new Error(`it has more than the ${size} bytes that the browser named`);
        await namingFile(to, () => file.writeFile(bytes));
        onPart(copied);
      });
      if (copied !== size) throw new Error(`${copied} of ${size} bytes were read`);
      await file.close();
      await rename(part, to);
      return size;
    } catch (error) {
      await file.close();
      await rm(part, { force: true });
      throw error;
    }
  }

  /** Removes the content of a file of the browser's machine: the blank page saves an empty file over it. No command deletes a file. */
  async empty(path: string): Promise<void> {
    const saved = await this.#save(await this.#newInput(await this.#openPage()), splitPath(path));
    if (saved !== path) throw new Error(`${path} could not be emptied`);
  }

  /** Reads what the browser reports about a file: size in bytes, and time in ms. A missing file has the size 0. */
  async look(path: string): Promise<{ size: number; lastModified: number }> {
    const { size, lastModified } = await this.#openFile(path);
    return { size, lastModified };
  }

  /**
   * Copies a file of this machine to the browser's machine.
   *
   * @returns Its path there.
   */
  async save(path: string, to: { size: number; folder: string; name: string }): Promise<string> {
    const page = await this.#openPage();
    const input = await this.#newInput(page);
    const file = await open(path, 'r');
    try {
      await eachPart(to.size, async (start) => {
        const { buffer, bytesRead } = await file.read(Buffer.alloc(PART), 0, PART, start);
        await this.#call(page, input, ADD, start / PART, buffer.toString('base64', 0, bytesRead));
      });
    } finally {
      await file.close();
    }
    return this.#save(input, to);
  }

  /** Lets the blank page save a file. Resolves to its path. */
  async #save(input: string, to: { folder: string; name: string }): Promise<string> {
    const saved = this.#lastSave.then(() => this.#saveNow(input, to));
    this.#lastSave = saved.catch(() => {});
    return saved;
  }

  async #saveNow(input: string, { folder, name }: { folder: string; name: string }): Promise<string> {
    const page = await this.#openPage();
    await this.send('Browser.setDownloadBehavior', {
      behavior: 'allow',
      browserContextId: page.browserContextId,
      downloadPath: folder,
      eventsEnabled: true,
    });
    // The download can end before the response to the call.
    const ended = new Promise<Progress>((resolve) => (this.#onSaved = resolve));
    await this.#call(page, input, SAVE, name);
    const { state, filePath = `${folder}/${name}` } = await raceAbort(ended, this.#closed.signal);
    if (state !== 'completed') throw new Error(`The browser could not save ${folder}/${name}`);
    return filePath;
  }

  async #openFile(path: string) {
    const page = await this.#openPage();
    const cdp = await this.#connect();
    const objectId = await this.#newInput(page);
    await cdp.send('DOM.setFileInputFiles', { files: [path], objectId }, page.sessionId);
    const facts = await this.#call(page, objectId, LOOK);
    const { size, lastModified } = isRecord(facts) ? facts : {};
    if (!Number.isSafeInteger(size) || typeof lastModified !== 'number')
      throw new Error('the browser names no size of the file');
    const read = async (from: number, to: number) => String(await this.#call(page, objectId, READ, from, to));
    return { size: size as number, lastModified, read };
  }

  async #newInput({ sessionId }: BlankPage): Promise<string> {
    const cdp = await this.#connect();
    const { result } = await cdp.send('Runtime.evaluate', { expression: NEW_INPUT }, sessionId);
    if (result.objectId === undefined) throw new Error('The page has no file input.');
    return result.objectId;
  }

  async #call(
    { sessionId }: BlankPage,
    objectId: string,
    code: string,
    ...args: unknown[]
  ): Promise<unknown> {
    const cdp = await this.#connect();
    const { result, exceptionDetails } = await cdp.send(
      'Runtime.callFunctionOn',
      {
        objectId,
        functionDeclaration: code,
        arguments: args.map((value) => ({ value })),
        awaitPromise: true,
        returnByValue: true,
        userGesture: true,
      },
      sessionId,
    );
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? 'The page failed.');
    return result.value;
  }

  async #openSocket(): Promise<CdpClient> {
    const { signal } = this.#closed;
    const socket = await this.#plan.open(signal);
    onAbort(signal, () => socket.cut('closed-by-us'));
    this.#isOpen = true;
    void socket.detached.then(() => {
      this.#isOpen = false;
      this.close();
    });
    return new CdpClient(socket, {
      'Browser.downloadWillBegin': (begun) => {
        if (begun.frameId === this.#pageId) this.#saving = begun.guid;
        else this.#plan.onBegun(begun);
      },
      'Browser.downloadProgress': (progress) => {
        if (progress.guid !== this.#saving) this.#plan.onProgress(progress);
        else if (progress.state !== 'inProgress') this.#onSaved(progress);
      },
    });
  }

  /** A hidden page opens no window. An older Chromium ignores the parameter. */
  async #newPage(): Promise<BlankPage> {
    const cdp = await this.#connect();
    const { browserContextId } = await cdp.send('Target.createBrowserContext', {
      disposeOnDetach: true,
    });
    this.#plan.hide(browserContextId);
    const targetId = await cdp.openPage({ browserContextId, hidden: true, background: true });
    this.#plan.hide(targetId);
    this.#pageId = targetId;
    const sessionId = await cdp.attach(targetId);
    // A library lets new pages wait until it has seen them, and it does not see this one.
    await cdp.send('Runtime.runIfWaitingForDebugger', {}, sessionId);
    return { sessionId, browserContextId };
  }

  #openPage(): Promise<BlankPage> {
    return (this.#page ??= this.#newPage());
  }
}

/** Begins the next parts of a file before the first one has ended, and uses their results in order. */
async function eachPart<T>(
  size: number,
  begin: (start: number) => Promise<T>,
  use: (result: T) => Promise<void> = async () => {},
): Promise<void> {
  const begun: Promise<T>[] = [];
  for (let start = 0; start < size || begun.length > 0;) {
    if (start < size && begun.length < PARTS_UNDER_WAY) {
      const part = begin(start);
      // A failure is thrown where the part is awaited.
      part.catch(() => {});
      begun.push(part);
      start += PART;
    } else await use(await begun.shift()!);
  }
}

/** Splits a path of the browser's machine, which may have another system than this one. */
function splitPath(path: string): { folder: string; name: string } {
  const at = Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\'));
  return { folder: path.slice(0, at), name: path.slice(at + 1) };
}
