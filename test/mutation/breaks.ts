/** A guarantee, and a change of the source after which it does not hold. */
export interface Break {
  /** The guarantee that is broken. */
  readonly what: string;
  /** A file of `src`, a text that is in it once, and its replacement. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
  /** Parts of the paths of the test files. */
  readonly tests: readonly string[];
}

export const broken = (
  what: string,
  file: string,
  [from, to]: readonly [from: string, to: string],
  ...tests: readonly string[]
): Break => ({ what, file, from, to, tests });

/** The breaks of `npm run breaks`. */
export const BREAKS: readonly Break[] = [
  broken(
    'a browser that arrives after an abort is released',
    'pool/grant.ts',
    ['if (ticket) void releaseOrphan(grant.id, ticket, { ...how, lease });', 'void [ticket, how, lease];'],
    'pool/abort',
    'lease/acquire.test',
  ),
  broken(
    'a browser of a broken response is released',
    'pool/grant.ts',
    ['void releaseOrphan(sessionId, pool.ticketOf(sessionId, lease), request);', ''],
    'net/broken-responses',
  ),
  broken(
    'a lost lease is searched for',
    'pool/grant.ts',
    ['const isReleased = await releaseLost(request, sentAt);', 'const isReleased = !request;'],
    'services/own-service',
  ),
  broken(
    'the secrets of a response are hidden',
    'pool/grant.ts',
    ['hideValuesIn(response.body);', ''],
    'pool/secrets',
    'pool/session-fields',
  ),
  broken(
    'a token is hidden',
    'pool/client.ts',
    ["hideOwnSecret(token, isFunction ? 'rotated' : 'user');", ''],
    'pool/token',
    'pool/secrets',
  ),
  broken(
    'a release that the service refuses is not repeated',
    'pool/release.ts',
    ['if (isFinal ?? meaning?.isTransient === false)', 'if (isFinal)'],
    'pool/release.test',
  ),
  broken(
    'a lease ends once',
    'lease/lease.ts',
    ['return (this.#ended ??= this.#end(outcome));', 'return (this.#ended = this.#end(outcome));'],
    'lease/lease.test',
    'lease/open-lease',
  ),
  broken(
    'a browser that will be reused is cleaned',
    'lease/held-browser.ts',
    ['await inTime(connection, CLEAN_TIMEOUT, () => connection.clean(how));', 'void how;'],
    'lease/without-service',
    'lease/lease.test',
  ),
  broken(
    'a browser that was not cleaned is destroyed',
    'lease/held-browser.ts',
    ["const auto = outcome.healthy ? 'reuse' : 'destroy';", "const auto = 'reuse';"],
    'lease/lease.test',
  ),
  broken(
    'the logins of a profile stay',
    'lease/held-browser.ts',
    [
      'hasProfile === true && this.context.state.isOwnContextUsed',
      'hasProfile === undefined && this.context.state.isOwnContextUsed',
    ],
    'fixtures/fixtures',
    'lease/lease.test',
  ),
  broken(
    'the limit of leases holds',
    'pool/gate.ts',
    ['|| taken >= place.caller.limit) continue;', '|| taken < 0) continue;'],
    'services/own-service',
  ),
  broken(
    'the caller that waits longest is served first',
    'pool/gate.ts',
    ['this.#indexOf(caller.number + 1), 0, place)', '0, 0, place)'],
    'pool/gate',
  ),
  broken(
    'one caller at a time sends requests during an outage',
    'pool/gate.ts',
    ["if (this.#state !== 'open' && open > 0) return undefined;", ''],
    'pool/gate',
  ),
  broken(
    'acquireTimeout ends a call',
    'lease/acquire.ts',
    ['new LinkedAbort(order.abort, order.settings.acquireTimeout)', 'new LinkedAbort(order.abort)'],
    'lease/acquire.test',
  ),
  broken(
    'a request does not wait longer than the deadline',
    'lease/acquire.ts',
    [
      'Math.min(Math.ceil(pollTimeout / 1000), Math.floor(timeLeft / 1000))',
      'Math.ceil(pollTimeout / 1000 + 0 * timeLeft)',
    ],
    'lease/acquire-waits',
  ),
  broken(
    'Retry-After is honoured',
    'lease/acquire.ts',
    ['says, retryAfter: retryAfterOf(error), error', 'says, retryAfter: retryAfterOf(undefined), error'],
    'lease/acquire-waits',
  ),
  broken(
    'an acquire request of unknown outcome is repeated once',
    'lease/next-attempt.ts',
    ['|| unknowns > 1)', '|| unknowns < 0)'],
    'lease/acquire.test',
  ),
  broken(
    '401 fails at once',
    'net/status.ts',
    ['401: SESSION_ENDED', "401: { ...SESSION_ENDED, acquire: 'unavailable' }"],
    'lease/acquire.test',
  ),
  broken(
    'a release that may have been processed is not repeated',
    'pool/release.ts',
    ["if (prior === 'none') return 'release';", "if (prior !== undefined) return 'release';"],
    'pool/release.test',
  ),
  broken(
    'only our own lease is released',
    'pool/tickets.ts',
    ['return valueAt(record, at) === is;', 'return valueAt(record, at) !== undefined || is !== "";'],
    'pool/release.test',
    'pool/release.real',
  ),
  broken(
    'a session that is gone counts as released',
    'net/status.ts',
    ['status === 404 || status === 410 ||', ''],
    'pool/release.test',
  ),
  broken(
    'a response has a size limit',
    'net/response.ts',
    ['if (size > LARGEST_BODY) throw new Error(TOO_LARGE);', ''],
    'net/broken-responses',
  ),
  broken(
    'a URL of a session holds no password',
    'shared/urls.ts',
    ["if (url.username || url.password) return 'contains a user name or a password';", ''],
    'drivers/connect-session',
  ),
  broken(
    'a URL of a session is encrypted',
    'shared/urls.ts',
    ['if (isEncrypted(url) || insecure) return undefined;', 'if (url || insecure) return undefined;'],
    'drivers/connect-session',
  ),
  broken(
    'a browser reaches exposed hosts only',
    'features/exposed-network/exposed-hosts.ts',
    ['&& this.pattern.test(url.href)', ''],
    'features/exposed-network/exposed-network.test',
  ),
  broken(
    'a client cannot circumvent the rules of a connection',
    'wire/wire.ts',
    ["const isLimited = stack.isLimit && client.kind !== 'own';", 'const isLimited = false;'],
    'wire/layers',
    'features/files/download-watch',
    'features/exposed-network/exposed-network.test',
  ),
  broken(
    'the data of all origins is cleared',
    'clean/clean-browser.ts',
    ["cdp.send('Storage.clearDataForOrigin', { origin: '*', storageTypes: 'all' }, sessionId),", ''],
    'clean/clean-browser.test',
  ),
  broken(
    'the permissions are cleared',
    'clean/clean-browser.ts',
    ["cdp.send('Browser.resetPermissions'),", ''],
    'clean/clean-browser.test',
  ),
  broken(
    'a browser with a shared worker is not reused',
    'clean/clean-browser.ts',
    ["({ type }) => type === 'shared_worker'", '() => false'],
    'clean/clean-browser.test',
  ),
  broken(
    'a callback has a timeout',
    'lease/lease.ts',
    ['this.timers.start(settings.timeout, () =>', 'startTimer(Number.POSITIVE_INFINITY, () =>'],
    'lease/lease.test',
    'lease/features',
  ),
  broken(
    'a run that lost its browser is no success',
    'lease/lease.ts',
    ['link.check();\n        signal.throwIfAborted();\n        return returned;', 'return returned;'],
    'lease/lease.test',
  ),
  broken(
    "the caller's own error passes unchanged",
    'lease/lease.ts',
    ['link.explain(error);\n      throw error;', "throw new Error('wrapped', { cause: error });"],
    'calls/call-site',
    'lease/lease.test',
  ),
  broken(
    'no message reaches a browser after its lease',
    'lease/lease.ts',
    ["whatever the library reports.\n      await attempt('cut', () => connection?.cut());", ''],
    'lease/open-lease',
  ),
  broken(
    'a browser that cannot be reached is destroyed',
    'lease/held-browser.ts',
    ["isUntouched ? 'reuse' : 'destroy'", "isUntouched ? 'destroy' : 'leave'"],
    'lease/open-lease',
  ),
  broken(
    'connectAttempts limits the browsers of a call',
    'lease/acquire.ts',
    ['connectAttempts - this.#unconnected', 'connectAttempts + 1 - this.#unconnected'],
    'lease/open-lease',
  ),
  broken(
    'a step of the end that hangs does not prevent the next',
    'lease/lease.ts',
    ['await raceTimeout(timeout, async () => take(), late);', 'await take();'],
    'lease/features',
    'lease/lease.test',
  ),
  broken(
    'only the replays of this lease are returned',
    'features/replays/recordings.ts',
    ['all.filter((replay) => !earlier.includes(identify(replay)))', 'all'],
    'features/replays',
  ),
  broken(
    'a recording is stopped',
    'features/replays/replays.ts',
    ['const stopped = recordings.stopRecording();', 'const stopped = undefined;'],
    'features/replays',
  ),
  broken(
    'pool.close waits for what continues after a call',
    'pool/client.ts',
    ['while (this.#open > 0)', 'while (this.#open < 0)'],
    'pool/close',
    'pool/abort',
  ),
  broken(
    'an outcome is in the checkpoint before the loop receives it',
    'jobs/checkpoint.ts',
    ['await file.append(recordOfOutcome(outcome));', ''],
    'jobs/checkpoint',
  ),
  broken(
    'each stored outcome belongs to one input',
    'jobs/stored-outcomes.ts',
    ['stored.isTaken = true;', ''],
    'jobs/checkpoint',
  ),
  broken(
    'a task has at most `retries` retries',
    'jobs/task.ts',
    ['if (this.attempts > retries ||', 'if (this.attempts > retries + 1 ||'],
    'jobs/retries',
  ),
  broken(
    'stopAfterFailures stops a job',
    'jobs/task.ts',
    ['failed >= settings.stopAfterFailures', 'failed < 0'],
    'jobs/retries',
    'jobs/map-pooled-browsers',
  ),
  broken(
    'hostConcurrency limits the tasks of a host',
    'jobs/host-slots.ts',
    ['const free = hostConcurrency - running;', 'const free = hostConcurrency;'],
    'jobs/hosts',
  ),
  broken(
    'hostDelay spaces the tasks of a host',
    'jobs/host-slots.ts',
    ['delayed(host, this.#limits.hostDelay);', ''],
    'jobs/hosts',
  ),
];
