import type { BrowserCard, WaitingRow } from '../dashboard-state.js';
import {
  byId,
  make,
  newTabLink,
  postJson,
  reconcile,
  remake,
  timeOf,
} from '../../../shared/page/browser/dom.js';
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
    { name: 'lease', facts: { leaseId, leaseName, tags }, render: () => line(titleOf(browser)) },
    {
      name: 'state',
      facts: { sessionId, leaseId, state, connections },
      render: () => line(stateOf(browser)),
    },
    { name: 'page', facts: { page }, render: () => pageOf(browser) },
    {
      name: 'actions',
      facts: { sessionId, leaseId, leaseName, live },
      render: () => line(actionsOf(browser)),
    },
  ];
}

function titleOf(browser: BrowserCard): HTMLElement[] {
  const { sessionId, leaseId } = browser;
  const id = make('code', { title: sessionId }, short(sessionId));
  if (leaseId === undefined) return [make('h3', {}, 'Browser ', id)];
  return [...nameAndTags(browser, 'h3'), make('span', { class: 'grow' }), id];
}

function stateOf({ state, age, lifetime, connections }: BrowserCard): HTMLElement[] {
  const count = connections === 1 ? '1 connection' : `${connections} connections`;
  const since = make('span', { class: 'dim' }, 'since ', timeOf(new Date(Date.now() - age)));
  return [
    make('span', { class: state === 'leased' ? 'badge live' : 'badge good' }, state),
    make('span', {}, 'for ', ageOf(age), lifetime === undefined ? '' : ` of ${duration(lifetime)}`),
    since,
    ...(state === 'leased' ? [make('span', { class: 'dim' }, count)] : []),
  ];
}

function pageOf({ page }: BrowserCard): HTMLElement {
  return make(
    'p',
    { class: 'page' },
    make('b', {}, page?.title ?? ''),
    make('span', { class: 'mono small' }, page?.url ?? ''),
  );
}

/** The name and the tags of a lease or a request. */
export function nameAndTags(
  { leaseName, tags }: Pick<WaitingRow, 'leaseName' | 'tags'>,
  kind: 'h3' | 'strong' = 'strong',
): HTMLElement[] {
  const name =
    leaseName === undefined ? make('span', { class: 'dim' }, 'no name') : make(kind, {}, leaseName);
  const chips = Object.entries(tags).map((pair) => make('span', { class: 'tag' }, pair.join('=')));
  return [name, ...chips];
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
  const button = (end: End): HTMLElement => {
    const attributes = { class: LOOKS[end], 'aria-label': labelOf(end, browser) };
    const element = make('button', attributes, TITLES[end]);
    element.addEventListener('click', () => confirmEnd(end, browser));
    return element;
  };
  const release = leaseId === undefined ? [] : [button('release')];
  return [...links, make('span', { class: 'grow' }), ...release, button('destroy')];
}

/** What a person can do to a browser. */
type End = 'release' | 'destroy';

const TITLES: Readonly<Record<End, string>> = { release: 'Release', destroy: 'Destroy browser' };

const LOOKS: Readonly<Record<End, string>> = { release: '', destroy: 'danger' };

function labelOf(end: End, { sessionId, leaseName }: BrowserCard): string {
  if (leaseName === undefined) return `${TITLES[end]} ${short(sessionId)}`;
  return end === 'release' ? `Release ${leaseName}` : `Destroy browser of ${leaseName}`;
}

/** Asks a person to confirm the end of a lease or of a browser, and sends the request. */
function confirmEnd(end: End, browser: BrowserCard): void {
  const { sessionId, leaseId } = browser;
  const dialog = byId('confirm', HTMLDialogElement);
  byId('confirm-title').textContent = `${labelOf(end, browser)}?`;
  byId('confirm-text').textContent = consequence(end, leaseId !== undefined);
  const yes = make('button', { class: `primary ${LOOKS[end]}` }, TITLES[end]);
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
  const lost = isLeased ? 'The program that leased this browser loses its connection at once. ' : '';
  return end === 'release'
    ? `${lost}The browser stays in the pool: the next lease gets it as it is now, with its open pages.`
    : `${lost}The browser ends with its pages and data, and the pool starts another one in its place.`;
}

async function send(end: End, body: object): Promise<void> {
  const notice = byId('notice');
  notice.hidden = true;
  try {
    const response = await postJson(`/dashboard/${end}${location.search}`, body);
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
