import { LiveScreen, openLive } from '../../../live/browser/live-screen.js';
import type { LiveMessage, LiveMode } from '../../../live/live-view.js';
import { byId, make, showBadge } from '../../../shared/page/browser/dom.js';
import { seconds, short } from '../../../shared/page/browser/format.js';
import { LEASE_ENDS } from '../../pool/browser/lease-ends.js';
import type { LiveFacts } from '../live-page.js';

/** Repetitions, and the milliseconds between them, of the question how the lease ended. */
const MAX_ATTEMPTS = 4;
const PAUSE = 250;

const screen = new LiveScreen((command) => {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(command));
});
/** The WebSocket; undefined if the lease had ended before the page opened. */
const socket = 'ended' in byId('state').dataset ? undefined : openLive(location.href, onMessage);
socket?.addEventListener('close', ({ reason }) => void showEnd(reason));

void showSession();

if (!socket) void showEnd('');

function onMessage(data: string | Blob): void {
  const message = typeof data === 'string' ? (JSON.parse(data) as LiveMessage) : data;
  if (!(message instanceof Blob) && message.type === 'mode') return start(message);
  const title = screen.show(message);
  if (title !== undefined) document.title = `${title || 'Live view'} · Live view`;
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
  if (!readOnly) screen.control();
}

/** Shows which lease and session this is. */
async function showSession(): Promise<void> {
  const { leaseName = '', sessionId = '' } = (await fetchFacts()) ?? {};
  byId('lease').textContent = leaseName;
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
