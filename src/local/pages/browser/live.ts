import type { LiveCommand, LiveMessage } from '../messages.js';
import { Address } from './address.js';
import { byId, showBadge } from './dom.js';
import { short } from './format.js';
import { LiveScreen } from './live-screen.js';
import { takeInput } from './take-input.js';
import { TabStrip } from './tab-strip.js';

const query = new URLSearchParams(location.search);
const readOnly = (query.get('readOnly') ?? 'false') !== 'false';
const socket = new WebSocket(`${location.origin.replace(/^http/, 'ws')}${location.pathname}?${query}`);
socket.binaryType = 'blob';

const screen = new LiveScreen();
const send = (command: LiveCommand): void => {
  if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(command));
};
const tabs = new TabStrip((id) => send({ type: 'watch', id }));
const address = new Address(send, readOnly);

byId('session').textContent = short(location.pathname.split('/')[2] ?? '');
byId('session').title = location.pathname.split('/')[2] ?? '';
showMode();
if (!readOnly) takeInput(screen, send);

socket.addEventListener('open', () => {
  showBadge(byId('state'), readOnly ? 'Watching' : 'In control', readOnly ? 'good' : 'live');
});
socket.addEventListener('message', ({ data }: MessageEvent<string | Blob>) => {
  if (typeof data === 'string') take(JSON.parse(data) as LiveMessage);
  else void screen.show(data);
});
socket.addEventListener('close', ({ code, reason }) => {
  showBadge(byId('state'), 'Ended', 'bad');
  document.title = 'Ended · Live view';
  // Before it was open, or with the lease: in both cases the browser is in nobody's hands, or in somebody else's.
  const ended = code === GOING_AWAY || code === NEVER_OPENED;
  byId('over-title').textContent = ended ? 'The session has ended' : 'The connection is lost';
  byId('over-text').textContent = ended
    ? 'The browser was given back, or is gone.'
    : reason || 'Reload this page to try again.';
  byId('over').hidden = false;
});

const GOING_AWAY = 1001;
const NEVER_OPENED = 1006;

function take(message: LiveMessage): void {
  if (message.type === 'size') return screen.resize(message.width, message.height);
  const current = message.tabs.find(({ id }) => id === message.current);
  tabs.show(message.tabs, message.current);
  address.show(current?.url ?? '');
  document.title = `${current?.title || 'Live view'} · Live view`;
}

function showMode(): void {
  const mode = byId('mode', HTMLAnchorElement);
  const other = new URLSearchParams(query);
  if (readOnly) other.delete('readOnly');
  else other.set('readOnly', 'true');
  mode.href = `?${other}`;
  mode.textContent = readOnly ? 'Take control' : 'Only watch';
  document.body.classList.toggle('watching', readOnly);
  byId('hint').textContent = readOnly
    ? 'You only watch: clicks and keys go nowhere.'
    : 'Click the page to type into it. Shift+Esc gives the keyboard back.';
}
