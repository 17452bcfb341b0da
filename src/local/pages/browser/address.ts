import type { LiveCommand } from '../messages.js';
import { byId } from './dom.js';

/** The address bar, and the buttons beside it. */
export class Address {
  readonly #input = byId('address', HTMLInputElement);

  /** Lets a person use it: until then, as for those who only watch, it shows where the page is. */
  use(send: (command: LiveCommand) => void): void {
    const input = this.#input;
    input.readOnly = false;
    for (const id of ['back', 'forward', 'reload']) byId(id, HTMLButtonElement).disabled = false;
    byId('back').addEventListener('click', () => send({ type: 'history', by: -1 }));
    byId('forward').addEventListener('click', () => send({ type: 'history', by: 1 }));
    byId('reload').addEventListener('click', () => send({ type: 'reload' }));
    input.addEventListener('focus', () => input.select());
    byId('go').addEventListener('submit', (event) => {
      event.preventDefault();
      const url = toUrl(input.value.trim());
      if (url !== undefined) send({ type: 'navigate', url });
      byId('keyboard').focus();
    });
  }

  /** Shows where the page is, unless a person is typing where it is to go. */
  show(url: string): void {
    if (document.activeElement !== this.#input || this.#input.readOnly) this.#input.value = url;
  }
}

/** What a person types as an address: with a scheme, or a host name, local ones without TLS. */
function toUrl(text: string): string | undefined {
  const isWhole = /^(https?:\/\/|about:|data:|file:|chrome:|blob:)/i.test(text);
  const isLocal = /^(localhost|127\.|\[::1\])/i.test(text);
  const url = isWhole ? text : `${isLocal ? 'http' : 'https'}://${text}`;
  return text !== '' && URL.canParse(url) ? url : undefined;
}
