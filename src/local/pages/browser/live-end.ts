import type { LiveFacts } from '../live-page.js';
import { byId, make, showBadge } from './dom.js';
import { LEASE_OUTCOMES, seconds, short } from './format.js';

/** Repetitions, and the milliseconds between them, of the question how the lease ended. */
const MAX_ATTEMPTS = 4;
const PAUSE = 250;

/** Shows which session this is. */
export async function showSession(): Promise<void> {
  const sessionId = (await fetchFacts())?.sessionId ?? '';
  byId('session').textContent = short(sessionId);
  byId('session').title = sessionId;
}

/** Shows why the connection ended, and what a person can open next. @param reason What the server said, or nothing. */
export async function showEnd(reason: string): Promise<void> {
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
  const [text] = LEASE_OUTCOMES[outcome];
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
