import type { LiveCommand, LiveMessage, LiveMode, LiveTabs } from '../messages.js';
import { Address } from './address.js';
import { byId, showBadge } from './dom.js';
import { short } from './format.js';
import { LiveScreen } from './live-screen.js';
import { takeInput } from './take-input.js';
import { TabStrip } from './tab-strip.js';

const socket = new WebSocket(
  `${location.origin.replace(/^http/, 'ws')}${location.pathname}${location.search}`,
);
socket.binaryType = 'blob';

const screen = new LiveScreen();
const send = (command: LiveCommand): void => {
  if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(command));
};
const tabs = new TabStrip((id) => send({ type: 'watch', id }));
const address = new Address();

byId('session').textContent = short(location.pathname.split('/')[2] ?? '');
byId('session').title = location.pathname.split('/')[2] ?? '';

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
  switch (message.type) {
    case 'mode':
      return begin(message);
    case 'size':
      return screen.resize(message.width, message.height);
    case 'tabs':
      return showTabs(message);
  }
}

/** The server decides what this person may do; what they see only follows from it. */
function begin({ readOnly, otherUrl }: LiveMode): void {
  showBadge(byId('state'), readOnly ? 'Watching' : 'In control', readOnly ? 'good' : 'live');
  document.body.classList.toggle('watching', readOnly);
  byId('hint').textContent = readOnly
    ? 'You only watch: clicks and keys go nowhere.'
    : 'Click the page to type into it. Shift+Esc gives the keyboard back.';
  const mode = byId('mode', HTMLAnchorElement);
  mode.hidden = otherUrl === undefined;
  mode.href = otherUrl ?? '';
  mode.textContent = readOnly ? 'Take control' : 'Only watch';
  if (readOnly) return;
  address.use(send);
  takeInput(screen, send);
}

function showTabs({ tabs: all, current }: LiveTabs): void {
  const shown = all.find(({ id }) => id === current);
  tabs.show(all, current);
  address.show(shown?.url ?? '');
  document.title = `${shown?.title || 'Live view'} · Live view`;
}
