import type { BrowserCard } from '../../dashboard/dashboard-state.js';
import { byId, make } from './dom.js';
import { short } from './format.js';

/** What a person can do to a browser. */
type End = 'release' | 'destroy';

const TITLES: Readonly<Record<End, string>> = { release: 'Release', destroy: 'Destroy' };

/** Asks a person to confirm the end of a lease or of a browser, and sends the request. */
export function confirmEnd(end: End, { sessionId, leaseId, leaseName }: BrowserCard): void {
  const dialog = byId('confirm', HTMLDialogElement);
  const name = leaseName ?? `browser ${short(sessionId)}`;
  byId('confirm-title').textContent = `${TITLES[end]} ${name}?`;
  byId('confirm-text').textContent = consequence(end, leaseId !== undefined);
  const yes = make('button', { class: 'danger' }, TITLES[end]);
  const no = make('button', { autofocus: '' }, 'Cancel');
  no.addEventListener('click', () => dialog.close());
  yes.addEventListener('click', () => {
    dialog.close();
    void send(end, { session_id: sessionId, lease_id: leaseId });
  });
  byId('confirm-buttons').replaceChildren(no, yes);
  dialog.showModal();
}

function consequence(end: End, isLeased: boolean): string {
  if (!isLeased) return 'The pool starts another browser in its place.';
  const lost = 'The program that leased this browser loses its connection at once.';
  return end === 'release'
    ? `${lost} The next lease gets the browser as it is now, with its open pages.`
    : `${lost} The pool starts another browser in its place.`;
}

async function send(end: End, body: object): Promise<void> {
  const notice = byId('notice');
  notice.hidden = true;
  try {
    const response = await fetch(`/dashboard/${end}${location.search}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (response.ok) return;
    notice.textContent = ((await response.json()) as { message: string }).message;
  } catch {
    notice.textContent = 'The local pool does not answer. It may be closed.';
  }
  notice.hidden = false;
}
