import type { LiveCommand } from '../live-commands.js';
import type { LiveFacts } from '../live-page.js';
import type { LiveMessage, LiveMode, LiveTab } from '../live-view.js';
import { byId, make, reconcile, showBadge } from '../../../shared/page/browser/dom.js';
import { seconds, short } from '../../../shared/page/browser/format.js';
import { LEASE_ENDS } from '../../pool/browser/lease-ends.js';
import { sendInput } from './live-input.js';

/** Repetitions, and the milliseconds between them, of the question how the lease ended. */
const MAX_ATTEMPTS = 4;
const PAUSE = 250;

/** Missing if the lease had ended before the page opened. */
const socket = 'ended' in byId('state').dataset ? undefined : connect();

const canvas = byId('screen', HTMLCanvasElement);
const context = canvas.getContext('2d', { alpha: false })!;
const address = byId('address', HTMLInputElement);
const tabStrip = byId('tabs');
/** Size of the page in the browser, in CSS pixels. */
const pageSize = { width: 0, height: 0 };

void showSession();
tabStrip.addEventListener('keydown', selectNeighbour);

if (!socket) void showEnd('');

function connect(): WebSocket {
  const path = `${location.pathname}${location.search}`;
  const opened = new WebSocket(`${location.origin.replace(/^http/, 'ws')}${path}`);
  opened.binaryType = 'blob';
  opened.addEventListener('message', ({ data }: MessageEvent<string | Blob>) => {
    if (typeof data === 'string') onMessage(JSON.parse(data) as LiveMessage);
    else void showPicture(data);
  });
  opened.addEventListener('close', ({ reason }) => void showEnd(reason));
  return opened;
}

function send(command: LiveCommand): void {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(command));
}

function onMessage(message: LiveMessage): void {
  switch (message.type) {
    case 'mode':
      return start(message);
    case 'size':
      return void Object.assign(pageSize, { width: message.width, height: message.height });
    case 'tabs':
      return showTabs(message);
  }
}

/** Shows the mode of this view. The server enforces the mode. */
function start({ readOnly, otherUrl }: LiveMode): void {
  showBadge(byId('state'), readOnly ? 'Watching' : 'In control', readOnly ? 'good' : 'live');
  document.body.classList.toggle('watching', readOnly);
  byId('hint').textContent = readOnly
    ? 'Read-only: clicks and keys are not sent.'
    : 'Click the page to type into it. Press Shift+Esc to leave the page.';
  const mode = byId('mode', HTMLAnchorElement);
  mode.hidden = otherUrl === undefined;
  mode.href = otherUrl ?? '';
  mode.textContent = readOnly ? 'Take control' : 'Only watch';
  if (readOnly) return;
  enableAddressBar();
  sendInput(canvas, toPage, send);
}

async function showPicture(picture: Blob): Promise<void> {
  const bitmap = await createImageBitmap(picture);
  const { width, height } = bitmap;
  // Setting the size clears the canvas, which would flicker.
  if (canvas.width !== width || canvas.height !== height) {
    Object.assign(canvas, { width, height });
    // The picture fills the window in one direction.
    canvas.style.setProperty('--ratio', `${width} / ${height}`);
  }
  context.drawImage(bitmap, 0, 0);
  bitmap.close();
  canvas.dataset['pictures'] = String(Number(canvas.dataset['pictures'] ?? 0) + 1);
}

/** Converts a mouse position on the canvas to a position in the page. */
function toPage({ clientX, clientY }: MouseEvent): { x: number; y: number } {
  const { left, top, width, height } = canvas.getBoundingClientRect();
  return {
    x: ((clientX - left) / width) * pageSize.width,
    y: ((clientY - top) / height) * pageSize.height,
  };
}

function showTabs({ tabs, current }: Extract<LiveMessage, { type: 'tabs' }>): void {
  reconcile(
    tabStrip,
    tabs,
    ({ id }) => id,
    (tab, present) => renderTab(tab, present ?? makeTab(tab), tab.id === current),
  );
  const shown = tabs.find(({ id }) => id === current);
  // A person may be typing another address.
  if (document.activeElement !== address || address.readOnly) address.value = shown?.url ?? '';
  document.title = `${shown?.title || 'Live view'} · Live view`;
}

function makeTab({ id }: LiveTab): HTMLElement {
  const tab = make('button', { role: 'tab' }, make('span'));
  tab.addEventListener('click', () => send({ type: 'watch', id }));
  return tab;
}

function renderTab({ title, url }: LiveTab, tab: HTMLElement, selected: boolean): HTMLElement {
  tab.firstChild!.textContent = title || url || 'New page';
  tab.title = url;
  tab.setAttribute('aria-selected', String(selected));
  tab.tabIndex = selected ? 0 : -1;
  return tab;
}

function selectNeighbour({ key }: KeyboardEvent): void {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
  if (step === undefined) return;
  const tabs = [...tabStrip.children] as HTMLElement[];
  const next = tabs[tabs.indexOf(document.activeElement as HTMLElement) + step];
  next?.focus();
  next?.click();
}

function enableAddressBar(): void {
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

/** Completes an address without a scheme: `http` for this machine, `https` for other hosts. */
function toUrl(text: string): string | undefined {
  const hasScheme = /^(https?:\/\/|about:|data:|file:|chrome:|blob:)/i.test(text);
  const isLocal = /^(localhost|127\.|\[::1\])/i.test(text);
  const url = hasScheme ? text : `${isLocal ? 'http' : 'https'}://${text}`;
  return text !== '' && URL.canParse(url) ? url : undefined;
}

/** Shows which session this is. */
async function showSession(): Promise<void> {
  const sessionId = (await fetchFacts())?.sessionId ?? '';
  byId('session').textContent = short(sessionId);
  byId('session').title = sessionId;
}

/** Shows why the connection ended, and what a person can open next. @param reason What the server said, or nothing. */
async function showEnd(reason: string): Promise<void> {
  showBadge(byId('state'), 'Ended', 'bad');
  document.title = 'Ended · Live view';
  byId('mode').hidden = true;
  byId('hint').textContent = '';
  const facts = await fetchEnd();
  const isEnded = facts?.outcome !== undefined;
  byId('over-title').textContent = isEnded ? 'The session has ended' : 'Connection lost';
  byId('over-text').textContent = explain(facts, reason);
  byId('over-links').replaceChildren(...(isEnded ? recordingLinks(facts) : []));
  byId('over').hidden = false;
}

/** The connection to a crashed browser may end before its lease. */
async function fetchEnd(): Promise<LiveFacts | undefined> {
  for (let attempt = 0; ; attempt++) {
    const facts = await fetchFacts();
    if (!facts || facts.outcome || attempt === MAX_ATTEMPTS) return facts;
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
}

async function fetchFacts(): Promise<LiveFacts | undefined> {
  try {
    const response = await fetch(`/live/facts${location.search}`);
    return response.ok ? ((await response.json()) as LiveFacts) : undefined;
  } catch {
    return undefined;
  }
}

function explain(facts: LiveFacts | undefined, reason: string): string {
  if (!facts)
    return 'The local pool does not answer. It may be closed: then its browsers and recordings are gone.';
  const { outcome, duration = 0, leaseName, replays } = facts;
  if (!outcome) return reason || 'Reload this page to connect again.';
  const [text] = LEASE_ENDS[outcome];
  const name = leaseName === undefined ? 'The lease' : `The lease ${leaseName}`;
  const advice =
    replays.length > 0 ? '' : ' It was not recorded: the option replays: "record" records a lease.';
  return `${name} ended after ${seconds(duration)}: ${text.toLowerCase()}.${advice}`;
}

function recordingLinks({ replays }: LiveFacts): HTMLElement[] {
  return replays.map((href, index) => {
    const text = replays.length === 1 ? 'Open the recording' : `Open recording ${index + 1}`;
    return make('a', { class: 'button', href }, text);
  });
}
