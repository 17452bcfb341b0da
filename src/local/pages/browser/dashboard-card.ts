import type { BrowserCard, WaitingRow } from '../../dashboard/dashboard-state.js';
import { confirmEnd } from './dashboard-dialog.js';
import { make, newTabLink, remake } from './dom.js';
import { duration, short } from './format.js';

/** Renders a browser. The picture stays while the facts change: a new element would flicker. */
export function renderCard(browser: BrowserCard, present: HTMLElement | undefined): HTMLElement {
  const card = present ?? make('li', {}, make('div', { class: 'shot' }), make('div'));
  card.className = `card ${browser.state}`;
  showThumbnail(card.firstElementChild!, browser);
  const facts = { ...browser, age: undefined, thumbnail: undefined };
  const body = card.lastElementChild as HTMLElement;
  const remade = remake(body, facts, () => makeBody(browser));
  if (remade !== body) body.replaceWith(remade);
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

function makeBody(browser: BrowserCard): HTMLElement {
  const { sessionId, state, age, connections, page } = browser;
  const badge = make('span', { class: state === 'leased' ? 'badge live' : 'badge good' }, state);
  const session = make('code', { title: sessionId }, short(sessionId));
  const count = connections === 1 ? '1 connection' : `${connections} connections`;
  const facts = make('p', { class: 'line' }, badge, make('span', {}, 'for ', ageOf(age)));
  if (state === 'leased') facts.append(make('span', { class: 'dim' }, count));
  facts.append(make('span', { class: 'grow' }), session);
  const shown = make(
    'p',
    { class: 'page' },
    make('b', {}, page?.title ?? ''),
    make('span', {}, page?.url ?? ''),
  );
  const name = make('p', { class: 'line' }, ...nameAndTags(browser));
  return make(
    'div',
    { class: 'body' },
    facts,
    name,
    shown,
    make('p', { class: 'line' }, ...actionsOf(browser)),
  );
}

/** The name and the tags of a lease or a request; nothing for those without. */
export function nameAndTags({ leaseName, tags = {} }: Pick<WaitingRow, 'leaseName' | 'tags'>): HTMLElement[] {
  const chips = Object.entries(tags).map((pair) => make('span', { class: 'tag' }, pair.join('=')));
  return leaseName === undefined ? chips : [make('strong', {}, leaseName), ...chips];
}

function actionsOf(browser: BrowserCard): HTMLElement[] {
  const { live, leaseName, sessionId, leaseId } = browser;
  const name = leaseName ?? short(sessionId);
  const links = live
    ? [
        newTabLink('Watch', `Watch ${name}`, live.watchUrl),
        newTabLink('Control', `Control ${name}`, live.controlUrl),
      ]
    : [];
  const button = (action: 'release' | 'destroy', text: string): HTMLElement => {
    const element = make('button', { 'aria-label': `${text} ${name}` }, text);
    element.addEventListener('click', () => confirmEnd(action, browser));
    return element;
  };
  const release = leaseId === undefined ? [] : [button('release', 'Release')];
  return [...links, make('span', { class: 'grow' }), ...release, button('destroy', 'Destroy')];
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
