import { randomUUID } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import type { BrowserFiles } from './browser-files.js';
import { readMessage, type Message } from './message.js';
import type { Frame, Socket } from './socket.js';

/** The commands that name files of this machine, over CDP and over WebDriver BiDi. */
const COMMANDS = ['DOM.setFileInputFiles', 'input.setFiles'];

/**
 * Copies the files of an upload to the browser's machine, if the library sends only their paths: Puppeteer always does, Playwright
 * with the connect option `isLocal`. The command waits for the copy, and then has the paths on that machine.
 */
export class Uploads {
  readonly #socket: Socket;
  readonly #files: BrowserFiles;
  /** Paths on the browser's machine. */
  readonly #copies: string[] = [];
  readonly #folder: string;
  #nextFolder = 0;
  /** Resolve when a command was sent or refused. */
  readonly #sent: Promise<void>[] = [];
  readonly #onFile: (path: string) => void;

  /**
   * @param temporary Folder of temporary files of the browser's machine.
   * @param onFile Called with the path of each file.
   */
  constructor(
    { socket, onFile = () => {} }: { socket: Socket; onFile?: ((path: string) => void) | undefined },
    files: BrowserFiles,
    temporary: string,
  ) {
    this.#socket = socket;
    this.#onFile = onFile;
    this.#files = files;
    this.#folder = `${temporary}/pooled-browser-uploads-${randomUUID()}`;
  }

  /** Returns true if it takes the command: then it sends the command later, or answers it. */
  take(data: string | Frame, method: string): boolean {
    if (!COMMANDS.includes(method)) return false;
    const command = readMessage(data);
    const { files } = command.params;
    if (!areNamed(files)) return false;
    files.forEach((path) => this.#onFile(path));
    this.#sent.push(this.#send(command, files));
    return true;
  }

  /** Removes the content of all copies, also of those that are under way. */
  async leaveNothing(): Promise<void> {
    await Promise.all(this.#sent.splice(0));
    for (const path of this.#copies.splice(0)) await this.#files.empty(path);
  }

  async #send(command: Message, paths: readonly string[]): Promise<void> {
    try {
      const files: string[] = [];
      for (const path of paths) files.push(await this.#pathOf(path));
      this.#socket.sendUnseen(JSON.stringify({ ...command, params: { ...command.params, files } }));
    } catch (cause) {
      const message = `The file could not be copied to the browser's machine: ${(cause as Error).message}`;
      this.#refuse(command, message);
    }
  }

  /** Resolves to the path on the browser's machine. */
  async #pathOf(path: string): Promise<string> {
    const found = await stat(path).catch(() => undefined);
    // Folders cannot be copied. A file that exists only on the browser's machine is there already.
    if (!found?.isFile()) return path;
    const seen = await this.#files.look(path);
    if (seen.size === found.size && seen.lastModified === Math.floor(found.mtimeMs)) return path;
    // Another page may upload a file of this name at the same time.
    const folder = `${this.#folder}/${this.#nextFolder++}`;
    const copy = await this.#files.save(path, { size: found.size, folder, name: basename(path) });
    this.#copies.push(copy);
    return copy;
  }

  #refuse({ id, method, sessionId }: Message, message: string): void {
    const answer =
      method === COMMANDS[0]
        ? { id, error: { code: -32_000, message }, sessionId }
        : { type: 'error', id, error: 'unable to set file input', message };
    void this.#socket.onMessage(Buffer.from(JSON.stringify(answer)), false);
  }
}

function areNamed(files: unknown): files is readonly string[] {
  return Array.isArray(files) && files.every((file) => typeof file === 'string');
}
