import type { BrowserCard, WaitingRow } from '../dashboard-state.js';
import { byId, make, newTabLink, reconcile, remake } from '../../../shared/page/browser/dom.js';
import { duration, short } from '../../../shared/page/browser/format.js';

/** Renders a browser. Each part stays until its own facts change: a new picture would flicker, a new button lose a click. */
export function renderCard(browser: BrowserCard, present: HTMLElement | undefined): HTMLElement {
  const card = present ?? make('li', {}, make('div', { class: 'shot' }), make('div', { class: 'body' }));
  card.className = `card ${browser.state}`;
  showThumbnail(card.firstElementChild!, browser);
  reconcile(
    card.lastElementChild as HTMLElement,
    partsOf(browser),
    ({ name }) => name,
    ({ facts, render }, part) => remake(part, facts, render),
  );
  return card;
}

function showThumbnail(shot: Element, { thumbnail, sessionId, leaseName }: BrowserCard): void {
  if (thumbnail === undefined) return shot.replaceChildren();
  const image = shot.querySelector('img') ?? make('img', {});
  const query = new URLSearchParams(location.search);
  query.set('session_id', sessionId);
  query.set('picture', String(thumbnail));
  const url = `/dashboard/thumbnail?${query}`;
  image.alt = `The page of ${leaseName ?? `browser ${short(sessionId)}`}`;
  if (image.getAttribute('src') !== url) image.src = url;
  if (!image.isConnected) shot.append(image);
}

/** A part of a card, with the facts that it shows, except ages. */
interface Part {
  readonly name: string;
  readonly facts: object;
  readonly render: () => HTMLElement;
}

function partsOf(browser: BrowserCard): Part[] {
  const { sessionId, leaseId, leaseName, tags, live, state, connections, page } = browser;
  const line = (children: HTMLElement[]) => make('p', { class: 'line' }, ...children);
  return [
    {
      name: 'state',
      facts: { sessionId, leaseId, state, connections },
      render: () => line(stateOf(browser)),
    },
    { name: 'lease', facts: { leaseName, tags }, render: () => line(nameAndTags(browser)) },
    { name: 'page', facts: { page }, render: () => pageOf(browser) },
    {
      name: 'actions',
      facts: { sessionId, leaseId, leaseName, live },
      render: () => line(actionsOf(browser)),
    },
  ];
}

function stateOf({ sessionId, state, age, lifetime, connections }: BrowserCard): HTMLElement[] {
  const count = connections === 1 ? '1 connection' : `${connections} connections`;
  return [
    make('span', { class: state === 'leased' ? 'badge live' : 'badge good' }, state),
    make('span', {}, 'for ', ageOf(age), lifetime === undefined ? '' : ` of ${duration(lifetime)}`),
    ...(state === 'leased' ? [make('span', { class: 'dim' }, count)] : []),
    make('span', { class: 'grow' }),
    make('code', { title: sessionId }, short(sessionId)),
  ];
}

function pageOf({ page }: BrowserCard): HTMLElement {
  return make('p', { class: 'page' }, make('b', {}, page?.title ?? ''), make('span', {}, page?.url ?? ''));
}

/** The name and the tags of a lease or a request; nothing for those without. */
export function nameAndTags({ leaseName, tags }: Pick<WaitingRow, 'leaseName' | 'tags'>): HTMLElement[] {
  const chips = Object.entries(tags).map((pair) => make('span', { class: 'tag' }, pair.join('=')));
  return leaseName === undefined ? chips : [make('strong', {}, leaseName), ...chips];
}

function actionsOf(browser: BrowserCard): HTMLElement[] {
  const { live, leaseName, sessionId, leaseId } = browser;
  const name = leaseName ?? short(sessionId);
  const links = live
    ? [
        newTabLink('Watch', `Watch ${name}`, live.watch),
        newTabLink('Control', `Control ${name}`, live.control),
      ]
    : [];
  const button = (action: End): HTMLElement => {
    const element = make('button', { 'aria-label': `${TITLES[action]} ${name}` }, TITLES[action]);
    element.addEventListener('click', () => confirmEnd(action, browser));
    return element;
  };
  const release = leaseId === undefined ? [] : [button('release')];
  return [...links, make('span', { class: 'grow' }), ...release, button('destroy')];
}

/** What a person can do to a browser. */
type End = 'release' | 'destroy';

const TITLES: Readonly<Record<End, string>> = { release: 'Release', destroy: 'Destroy' };

/** Asks a person to confirm the end of a lease or of a browser, and sends the request. */
function confirmEnd(end: End, { sessionId, leaseId, leaseName }: BrowserCard): void {
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

/** An element that shows a growing age. @param age In milliseconds, now. */
export function ageOf(age: number): HTMLElement {
  const element = make('span', { class: 'number', 'data-since': String(performance.now() - age) });
  updateAge(element);
  return element;
}

export function updateAges(): void {
  document.querySelectorAll<HTMLElement>('[data-since]').forEach(updateAge);
}

function updateAge(element: HTMLElement): void {
  const text = duration(performance.now() - Number(element.dataset['since']));
  if (element.textContent !== text) element.textContent = text;
}
