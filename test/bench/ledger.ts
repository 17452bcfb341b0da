import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { LocalPoolEvent } from '../../src/local.js';

interface LeaseEntry {
  readonly sessionId: string;
  /** The run that received the session id; undefined until then. */
  holder?: number;
  /** How the lease ended at the server. */
  end?: 'released' | 'inactive' | 'exited' | 'other';
  /** Number of release requests of the holder, and whether a response to one was delivered. */
  asked: number;
  isConfirmed: boolean;
  /** Its holder was told after the end of the lease that it is over: no release was necessary any more. */
  isSeenOver: boolean;
}

/** Records how each lease ended, at the server and between the server and each run. */
export class Ledger {
  readonly #leases: LeaseEntry[] = [];
  readonly #reports = new Map<number, string[]>();
  readonly #acquiring = new Map<number, number>();
  /** Runs whose process was killed. */
  readonly #killed = new Set<number>();
  #excused = 0;
  /** Runs whose release was repeated after the answer to the first one was delivered. */
  readonly #repeated: number[] = [];
  #foreign = 0;

  /** The local pool's events. */
  readonly note = (event: LocalPoolEvent): void => {
    if (event.type === 'leased') {
      this.#leases.push({ sessionId: event.sessionId, asked: 0, isConfirmed: false, isSeenOver: false });
    } else if (event.type === 'released') {
      const lease = this.#last(event.sessionId)!;
      lease.end = 'released';
      if (lease.asked === 0) {
        this.#foreign++;
        process.stderr.write(`\nAnother run released ${event.sessionId}, which run ${lease.holder} held.\n`);
      }
    } else if (event.type === 'browser-destroyed') {
      const lease = this.#last(event.sessionId);
      const { reason } = event;
      if (lease) lease.end ??= reason === 'inactive' || reason === 'exited' ? reason : 'other';
    }
  };

  /** Reads a line of a program: the result of a run. */
  hear(line: string): void {
    const { run, what } = JSON.parse(line) as { run: number; what: string };
    this.#reports.set(run, [...(this.#reports.get(run) ?? []), what]);
  }

  /** Notes that the process of these runs will be killed: the outcome of its open acquire requests is unknown. */
  end(first: number, runs: number): void {
    for (let run = first; run < first + runs; run++) {
      this.#killed.add(run);
      this.#excused += this.#acquiring.get(run) ?? 0;
    }
  }

  /** A killed process did not read this answer, though it was delivered: its event loop was blocked. */
  #isUnread(run: number, what: 'acquired' | 'released'): boolean {
    return this.#killed.has(run) && !this.#reports.get(run)?.includes(what);
  }

  counts(): Record<string, number> {
    const known = this.#leases.filter(({ holder }) => holder !== undefined);
    const lost = known.filter(
      ({ end, isConfirmed, isSeenOver }) =>
        end !== 'released' && end !== 'exited' && !isConfirmed && !isSeenOver,
    );
    const reports = (run: number, what: string) =>
      this.#reports.get(run)?.filter((one) => one === what).length ?? 0;
    // A response that a fault cut off behind this server: its run reported an unknown outcome.
    const isReported = ({ holder }: LeaseEntry) =>
      reports(holder!, 'release-failed') > 0 ||
      lost.filter((other) => other.holder === holder).length <= reports(holder!, 'outcome-unknown');
    const reported = lost.filter(isReported);
    const unread = lost.filter(
      (lease) => !reported.includes(lease) && this.#isUnread(lease.holder!, 'acquired'),
    );
    const silent = lost.filter((lease) => !reported.includes(lease) && !unread.includes(lease));
    for (const { sessionId, holder, end, asked } of silent) {
      const runs = `run ${holder} (${this.#reports.get(holder!)?.join(', ') ?? 'its process was killed'})`;
      process.stderr.write(`\n${sessionId} of ${runs}: ended as ${end}, ${asked} release requests.\n`);
    }
    // No run received their session ids.
    const nobodys = this.#leases.filter(
      ({ holder, end }) => holder === undefined && end !== 'released',
    ).length;
    const used = reported.filter(({ holder }) => reports(holder!, 'release-failed') === 0).length;
    const unknown =
      [...this.#reports.values()].flat().filter((what) => what === 'outcome-unknown').length - used;
    const told = Math.min(nobodys, unknown);
    const excused = Math.min(nobodys - told, this.#excused);
    const released = this.#leases.filter(({ end }) => end === 'released').length;
    return {
      granted: this.#leases.length,
      released,
      'ended by a fault before the release': known.length - released - lost.length,
      'lost, and reported as unknown': reported.length + told,
      'lost because the process was killed while it acquired': excused + unread.length,
      'lost without a report': silent.length + nobodys - told - excused,
      'released again after a confirmation': this.#repeated.filter((run) => !this.#isUnread(run, 'released'))
        .length,
      'released again because the process was killed before it read the confirmation': this.#repeated.filter(
        (run) => this.#isUnread(run, 'released'),
      ).length,
      'released while held by another': this.#foreign,
    };
  }

  /** A server between the runs and the pool. The first part of each path is the number of a run. */
  async front(pool: { readonly baseUrl: string }) {
    const server = createServer((request, response) => void this.#pass(pool, request, response));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return {
      baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      async [Symbol.asyncDispose]() {
        server.closeAllConnections();
        await once(server.close(), 'close');
      },
    };
  }

  async #pass(
    pool: { readonly baseUrl: string },
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const [, run = '', path = ''] = /^\/(\d+)(\/.*)$/.exec(request.url ?? '') ?? [];
    const body = await textOf(request);
    const watch = this.#watch(Number(run), path, body);
    const { host } = new URL(pool.baseUrl);
    const headers = { ...request.headers, host };
    const [hostname, port] = host.split(':');
    const options = { hostname, port, path, method: request.method, headers, agent: false };
    const reset = () => response.socket?.resetAndDestroy();
    const upstream = httpRequest(options, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers);
      watch.onHead(answer.statusCode!);
      answer.on('data', (chunk: Buffer) => (watch.onData(String(chunk)), response.write(chunk)));
      answer.once('error', reset);
      answer.once('end', () => response.end());
      response.once('finish', () => watch.onAnswer(answer.statusCode!));
    });
    upstream.once('error', reset);
    response.once('close', () => {
      watch.onClose();
      upstream.destroy();
    });
    upstream.end(body);
  }

  /** Follows one request of a run. */
  #watch(run: number, path: string, body: string) {
    const onStatus = (_status: number) => {};
    const watch = { onHead: onStatus, onData: (_text: string) => {}, onAnswer: onStatus, onClose: () => {} };
    if (path.endsWith('/release')) {
      const { session_id } = JSON.parse(body) as { session_id: string };
      const lease = this.#leases.findLast((one) => one.sessionId === session_id && one.holder === run);
      if (lease?.isConfirmed) {
        this.#repeated.push(run);
        process.stderr.write(`\nRun ${run} released ${session_id} again.\n`);
      }
      if (lease) {
        lease.asked++;
        // The body of a 404 says nothing that its status does not: a fault may cut it off.
        watch.onHead = (status) => (lease.isSeenOver ||= status === 404 && lease.end !== undefined);
        watch.onAnswer = (status) => (lease.isConfirmed ||= status === 204 || status === 404);
      }
    } else if (path.startsWith('/browsers/')) {
      const sessionId = path.split('/')[2];
      const lease = this.#leases.findLast((one) => one.sessionId === sessionId && one.holder === run);
      watch.onAnswer = () => lease && (lease.isSeenOver ||= lease.end !== undefined);
    } else if (path.endsWith('/acquire') || path.startsWith('/browsers?')) {
      const isAcquire = path.endsWith('/acquire');
      const change = (by: number) => this.#acquiring.set(run, (this.#acquiring.get(run) ?? 0) + by);
      if (isAcquire) change(1);
      if (isAcquire) watch.onClose = () => change(-1);
      // The service leases a browser, or a search finds the one of a lost response.
      let text = '';
      watch.onData = (more) => {
        text += more;
        const [, sessionId] = /"session_id":"(\w+)"/.exec(text) ?? [];
        const lease = sessionId === undefined ? undefined : this.#last(sessionId);
        if (lease) lease.holder = run;
      };
    }
    return watch;
  }

  #last(sessionId: string): LeaseEntry | undefined {
    return this.#leases.findLast((lease) => lease.sessionId === sessionId);
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text;
}
