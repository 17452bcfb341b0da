import type { RunEvent } from '../../run/events.js';

/** What a step of a run means, in a few words; nothing for steps that say nothing new. */
export function describeStep(event: RunEvent): string | undefined {
  switch (event.type) {
    case 'acquiring':
      return event.attempt === 1 ? 'asks the pool for a browser' : undefined;
    case 'waiting':
      return `waits: none is free after ${seconds(event.waited)}${because(event)}`;
    case 'acquired':
      return `leased browser ${short(event.session.session_id)} after ${seconds(event.elapsed)}`;
    case 'connecting':
      return `connects over ${event.protocol === 'bidi' ? 'WebDriver BiDi' : 'CDP'}`;
    case 'connected':
      return 'connected: a page is ready';
    case 'callback-started':
      return 'callback runs';
    case 'callback-ended':
      return `callback ended: ${event.status}`;
    case 'swept':
      return event.error ? `swept, not all of it${because(event)}` : 'swept: what it opened is closed';
    case 'replays':
      return describeReplays(event);
    case 'released':
      return `released: ${event.released === 'reused' ? 'back in the pool' : 'destroyed'}`;
    default:
      return describeTrouble(event);
  }
}

function describeReplays({ replays, status }: Extract<RunEvent, { type: 'replays' }>): string {
  const links = replays.map(({ replay_view_url: link, replay_id: id }) => link ?? id ?? 'without a link');
  return `replays: ${[status, ...links].join('  ')}`;
}

function describeTrouble(event: RunEvent): string {
  return `${event.type}${because(event)}`;
}

function because(event: RunEvent): string {
  return 'error' in event && event.error ? `: ${event.error.message}` : '';
}

export function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(2)} s`;
}

function short(sessionId: string): string {
  return sessionId.slice(0, 8);
}
