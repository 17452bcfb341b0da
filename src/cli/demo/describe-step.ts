import type { RunEvent } from '../../lease/events.js';

/** What a step of a run means, in a few words; nothing for steps that say nothing new. */
export function describeStep(event: RunEvent): string | undefined {
  switch (event.type) {
    case 'queued':
      return `waits in line, ${event.ahead} ahead`;
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
    case 'recording-started':
      return 'recording runs';
    case 'recording-stopped':
      return event.error ? `recording ends with the lease${because(event)}` : 'recording stopped';
    case 'recording-unavailable':
      return `not recorded${because(event)}`;
    default:
      return describeTrouble(event);
  }
}

function describeReplays({ replays, status }: Extract<RunEvent, { type: 'replays' }>): string {
  const links = replays.map(({ replay_view_url: link, replay_id: id }) => link ?? id ?? 'without a link');
  return `replays: ${[status, ...links].join('  ')}`;
}

function describeTrouble(event: RunEvent): string {
  switch (event.type) {
    case 'connection-dropped':
      return `connection dropped: ${event.reason}`;
    case 'reconnected':
      return 'connected again';
    case 'session-expiring':
      return `nothing is connected: the service ends it in ${seconds(event.timeLeft)}`;
    default:
      return `${event.type}${because(event)}`;
  }
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
