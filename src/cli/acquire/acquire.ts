import { once } from 'node:events';
import { LONGEST_TIMER } from '../../shared/abort.js';
import { revealSession } from '../../service/session.js';
import type { BrowserSession } from '../../service/wire.js';
import { ExitStatus } from '../cli-error.js';
import { formatTable } from '../table.js';
import { EXIT } from '../exit-codes.js';
import { interruptible } from '../interruptible.js';
import { describeReplays } from '../lease/describe-replays.js';
import { leaseSession, type LeaseTail } from '../lease/lease-session.js';
import type { LeaseOptions } from '../lease/options.js';
import { note, printable } from '../note.js';
import { openPool } from '../open-pool.js';

/** What the command line says about `acquire`. */
export interface AcquireOptions extends LeaseOptions {
  untilEof?: true;
  json?: true;
}

/** Holds a browser until it is told to stop. */
export async function acquire(poolName: string, options: AcquireOptions): Promise<void> {
  const print = options.json ? printJson : printText;
  const released = await interruptible(async (signal) => {
    await using pool = openPool(poolName, options);
    await using lease = await leaseSession(pool, { ...options, signal });
    print.acquired(lease.session);
    note(`Holds it until ${options.untilEof ? 'stdin ends, or ' : ''}Ctrl-C. ${limit(lease.session)}`);
    await untilTold(signal, options);
    const tail = await lease.end();
    print.released(tail);
    return tail.released;
  });
  if (released === 'failed') throw new ExitStatus(EXIT.failed);
}

function limit({ timeout_seconds: seconds }: BrowserSession): string {
  return `As long as nothing is connected, the service gives it ${seconds} s, and then destroys it.`;
}

/** Resolves when the person, or the program at our stdin, wants no more. Never rejects. */
async function untilTold(signal: AbortSignal, { untilEof }: AcquireOptions): Promise<void> {
  // A signal that may come keeps no process alive.
  const awake = setInterval(() => {}, LONGEST_TIMER);
  const ways: Promise<unknown>[] = [signal.aborted ? Promise.resolve() : once(signal, 'abort')];
  if (untilEof) ways.push(once(process.stdin.resume(), 'close').catch(() => {}));
  await Promise.race(ways);
  if (untilEof) process.stdin.destroy();
  clearInterval(awake);
}

const printText = {
  acquired: (session: BrowserSession) => {
    const rows = [
      ['session', session.session_id],
      ['cdp', session.cdp_ws_url],
      ['webdriver', session.webdriver_ws_url],
      ['live view', session.browser_live_view_url ?? 'none'],
      ['timeout', `${session.timeout_seconds} s without a connection`],
    ];
    process.stdout.write(`${printable(formatTable(rows).join('\n'))}\n`);
  },
  released: (tail: LeaseTail) => {
    describeReplays(tail).forEach(note);
    if (tail.released !== 'failed') note(`Given back: ${FATES[tail.released]}.`);
  },
};

const FATES = { reused: 'it is in its pool again', destroyed: 'it is destroyed', left: 'still leased' };

const printJson = {
  acquired: (session: BrowserSession) =>
    // JSON of a session leaves its secrets out. Here they are what was asked for.
    printLine({ type: 'acquired', session: revealSession(session) }),
  released: ({ released, replays, replayStatus }: LeaseTail) =>
    printLine({ type: 'released', released, replays, replayStatus }),
};

function printLine(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
