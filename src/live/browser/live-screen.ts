import { byId, make, reconcile } from '../../shared/page/browser/dom.js';
import type { LiveCommand } from '../live-commands.js';
import type { LiveMessage } from '../live-view.js';
import type { LiveTab } from '../page-titles.js';
import { sendInput } from './live-input.js';

type Send = (command: LiveCommand) => void;

/** Opens the WebSocket of a live view. @param onMessage Receives JSON, and pictures as a `Blob`. */
export function openLive(url: string, onMessage: (data: string | Blob) => void): WebSocket {
  const socket = new WebSocket(url.replace(/^http/, 'ws'));
  socket.binaryType = 'blob';
  socket.addEventListener('message', ({ data }: MessageEvent<string | Blob>) => onMessage(data));
  return socket;
}

/** The pictures, tabs and address of a browser on a page. */
export class LiveScreen {
  readonly #canvas = byId('screen', HTMLCanvasElement);
  readonly #context = this.#canvas.getContext('2d', { alpha: false })!;
  readonly #address = byId('address', HTMLInputElement);
  readonly #tabs = byId('tabs');
  readonly #send: Send;
  /** Size of the page in the browser, in CSS pixels. */
  #size = { width: 0, height: 0 };

  constructor(send: Send) {
    this.#send = send;
    this.#tabs.addEventListener('keydown', (event) => this.#selectNeighbour(event));
  }

  /** Sends the mouse and keyboard input of the person from now on. */
  control(): void {
    this.#enableAddressBar();
    sendInput(this.#canvas, (event) => this.#toPage(event), this.#send);
  }

  /** Shows what the live view sends. Returns the title of the tab that is shown, if that may have changed. */
  show(message: LiveMessage | Blob): string | undefined {
    if (message instanceof Blob) void this.#showPicture(message);
    else if (message.type === 'tabs') return this.#showTabs(message);
    else if (message.type === 'size') this.#size = message;
    return undefined;
  }

  async #showPicture(picture: Blob): Promise<void> {
    const canvas = this.#canvas;
    const bitmap = await createImageBitmap(picture);
    const { width, height } = bitmap;
    // Setting the size clears the canvas, which would flicker.
    if (canvas.width !== width || canvas.height !== height) {
      Object.assign(canvas, { width, height });
      // The picture fills the window in one direction.
      canvas.style.setProperty('--ratio', `${width} / ${height}`);
    }
    this.#context.drawImage(bitmap, 0, 0);
    bitmap.close();
    canvas.dataset['pictures'] = String(Number(canvas.dataset['pictures'] ?? 0) + 1);
  }

  /** Converts a mouse position on the canvas to a position in the page. */
  #toPage({ clientX, clientY }: MouseEvent): { x: number; y: number } {
    const { left, top, width, height } = this.#canvas.getBoundingClientRect();
    return {
      x: ((clientX - left) / width) * this.#size.width,
      y: ((clientY - top) / height) * this.#size.height,
    };
  }

  #showTabs({ tabs, current }: Extract<LiveMessage, { type: 'tabs' }>): string {
    reconcile(
      this.#tabs,
      tabs,
      ({ id }) => id,
      (tab, present) => renderTab(tab, present ?? this.#makeTab(tab), tab.id === current),
    );
    const shown = tabs.find(({ id }) => id === current);
    // A person may be typing another address.
    if (document.activeElement !== this.#address || this.#address.readOnly)
      this.#address.value = shown?.url ?? '';
    return shown?.title ?? '';
  }

  #makeTab({ id }: LiveTab): HTMLElement {
    const tab = make('button', { role: 'tab' }, make('span'));
    tab.addEventListener('click', () => this.#send({ type: 'watch', id }));
    return tab;
  }

  #selectNeighbour({ key }: KeyboardEvent): void {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (step === undefined) return;
    const tabs = [...this.#tabs.children] as HTMLElement[];
    const next = tabs[tabs.indexOf(document.activeElement as HTMLElement) + step];
    next?.focus();
    next?.click();
  }

  #enableAddressBar(): void {
    const [address, send] = [this.#address, this.#send];
    address.readOnly = false;
    for (const id of ['back', 'forward', 'reload']) byId(id, HTMLButtonElement).disabled = false;
    byId('back').addEventListener('click', () => send({ type: 'history', by: -1 }));
    byId('forward').addEventListener('click', () => send({ type: 'history', by: 1 }));
    byId('reload').addEventListener('click', () => send({ type: 'reload' }));
    address.addEventListener('focus', () => address.select());
    byId('go').addEventListener('submit', (event) => {
      event.preventDefault();
      const url = toUrl(address.value.trim());
      if (url !== undefined) send({ type: 'navigate', url });
      byId('keyboard').focus();
    });
  }
}

function renderTab({ title, url }: LiveTab, tab: HTMLElement, selected: boolean): HTMLElement {
  tab.firstChild!.textContent = title || url || 'New page';
  tab.title = url;
  tab.setAttribute('aria-selected', String(selected));
  tab.tabIndex = selected ? 0 : -1;
  return tab;
}

/** Completes an address without a scheme: `http` for this machine, `https` for other hosts. */
function toUrl(text: string): string | undefined {
  const hasScheme = /^(https?:\/\/|about:|data:|file:|chrome:|blob:)/i.test(text);
  const isLocal = /^(localhost|127\.|\[::1\])/i.test(text);
  const url = hasScheme ? text : `${isLocal ? 'http' : 'https'}://${text}`;
  return text !== '' && URL.canParse(url) ? url : undefined;
}
