import type { LocalPoolEvent, Protocol, RecordingEnd } from '../../local/events.js';
import type { Paint } from '../paint.js';

/** One line for a person; nothing for events that only a program wants. */
export function describeEvent(event: LocalPoolEvent, paint: Paint): string | undefined {
  switch (event.type) {
    case 'browser-started':
      return line('started', event, `process ${event.pid}`);
    case 'waiting':
      return paint('yellow', [event.type.padEnd(WIDTH), event.pool, event.name].filter(Boolean).join('  '));
    case 'leased':
      return paint('green', line('leased', event, event.name));
    case 'released':
      return paint('cyan', line('released', event));
    case 'browser-destroyed':
      return paint('yellow', line('destroyed', event, REASONS[event.reason]));
    case 'connected':
    case 'disconnected':
      return line(event.type, event, PROTOCOLS[event.protocol]);
    case 'browser-start-failed':
      return paint('red', `${'not started'.padEnd(WIDTH)}  ${event.pool}: ${event.message}`);
    case 'recording-started':
      return line('recording', event, event.replayId);
    case 'recording-finished':
      return describeRecording(event, paint);
    case 'request':
      return describeRequest(event, paint);
    default:
      return undefined;
  }
}

const WIDTH = 'disconnected'.length;

const PROTOCOLS: Record<Protocol, string> = { cdp: 'CDP', bidi: 'WebDriver BiDi', 'live-view': 'live view' };

const REASONS: Record<Extract<LocalPoolEvent, { type: 'browser-destroyed' }>['reason'], string> = {
  released: 'given back to be destroyed',
  flushed: 'the pool was flushed',
  deleted: 'deleted',
  inactive: 'nobody was connected for too long',
  exited: 'it ended by itself',
  closed: 'the pool closes',
};

function line(
  what: string,
  { pool, sessionId }: { pool?: string; sessionId: string },
  more?: string,
): string {
  const about = [sessionId.slice(0, 8), pool, more].filter((part) => part !== undefined);
  return `${what.padEnd(WIDTH)}  ${about.join('  ')}`;
}

function describeRecording(
  event: Extract<LocalPoolEvent, { type: 'recording-finished' }>,
  paint: Paint,
): string {
  const { replayId, reason, milliseconds, bytes, failure } = event;
  if (failure !== undefined) return paint('red', line('recorded', event, `${replayId}, no film: ${failure}`));
  const facts = `${(milliseconds / 1000).toFixed(1)} s, ${(bytes / 1024 / 1024).toFixed(1)} MB`;
  const early = CUT_SHORT[reason];
  if (early === undefined) return line('recorded', event, `${replayId}, ${facts}`);
  return paint('yellow', line('recorded', event, `${replayId}, ${facts}, cut short: ${early}`));
}

/** Ends that nobody asked for. */
const CUT_SHORT: Partial<Record<RecordingEnd, string>> = {
  'disk-limit': 'the limit of bytes was reached',
  'disk-full': 'the disk is full',
  'disk-failed': 'the disk took no more',
  'browser-gone': 'the browser is gone',
};

/** Requests that came to nothing; what the others did is told by events of its own. */
function describeRequest(
  { method, path, status }: Extract<LocalPoolEvent, { type: 'request' }>,
  paint: Paint,
): string | undefined {
  const request = `${status}  ${method} ${path}`;
  if (status === NO_BROWSER && path.endsWith('/acquire')) return `${'none free'.padEnd(WIDTH)}  ${request}`;
  if (status === CLIENT_GONE) return `${'client left'.padEnd(WIDTH)}  ${request}`;
  return status >= 400 ? paint('red', `${'refused'.padEnd(WIDTH)}  ${request}`) : undefined;
}

const NO_BROWSER = 204;
const CLIENT_GONE = 499;
