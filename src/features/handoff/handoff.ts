import type { OpenCdp, Opening } from '../../drivers/extension.js';
import type { FeatureContext } from '../../lease/feature.js';
import { BrowserPictures, type PicturedBrowser } from '../../recorder/pictures.js';
import { LinkedAbort, onAbort, raceAbort, type Abortable } from '../../shared/abort.js';
import { startTimer, clock } from '../../shared/clock.js';
import { asError } from '../../shared/errors.js';
import {
  ConnectionDroppedError,
  HandoffTimeoutError,
  isHandoffTimeoutError,
} from '../../shared/lease-errors.js';
import type { StepOf } from '../../shared/telemetry.js';
import { CdpClient } from '../../wire/cdp-client.js';
import { Hold } from './hold.js';
import { PageQuestions } from './page-questions.js';
import type { HandoffAnswer, HandoffRequest, HandoffStatus, HandoffSteps } from './options.js';
import { HandoffServer } from './server.js';

/** The browser that a person uses. */
interface HandedBrowser {
  readonly lease: FeatureContext<StepOf<HandoffSteps>>;
  /** The connection of this process, if it has one. */
  readonly opening: Opening | undefined;
  readonly openCdp: OpenCdp | undefined;
  /** Aborts when nobody waits for the answer any longer. */
  readonly signal: AbortSignal;
  /** Tells when the lease has ended. */
  readonly ended: Abortable;
}

/** Lets a person use the browser, until the answer. Meanwhile the clients of the browser do nothing there. */
export async function handOff(
  { message, timeout }: HandoffRequest,
  { lease, opening, openCdp = opening?.openCdp, signal, ended }: HandedBrowser,
): Promise<HandoffAnswer> {
  const { sessionId, grant, service, emit } = lease;
  const over = new LinkedAbort(signal);
  // The signal of the lease aborts first if the browser is lost.
  const stopListening = onAbort(opening?.signal, () => over.abort(new ConnectionDroppedError({ sessionId })));
  const hold = new Hold();
  const letGo = opening?.shared.stack.addFirst(hold.layer);
  let questions: PageQuestions | undefined;
  let server: HandoffServer | undefined;
  let timer: NodeJS.Timeout | undefined;
  let end = 'The hand-off has ended.';
  let status: HandoffStatus = 'ended';
  try {
    over.throwIfAborted();
    const browser = grant.cdpUrl === undefined || !openCdp ? undefined : pictured(openCdp, over.signal);
    questions = browser && new PageQuestions((targetId) => hold.forgetFiles(targetId));
    ended.onAbort(() => questions?.cut());
    await raceAbort(Promise.resolve(questions?.open(browser!.source)), over.signal);
    const {
      liveViewUrl,
      lease: { name },
    } = service;
    server = await HandoffServer.start({ message, name, sessionId, browser, questions, liveViewUrl });
    const late = () => over.abort(new HandoffTimeoutError(timeout, { sessionId }));
    timer = startTimer(timeout, late);
    emit({ type: 'handoff', sessionId, url: server.url, message });
    const answer = await raceAbort(server.answered, over.signal);
    status = answer.status;
    end = ENDS[status];
    return answer;
  } catch (error) {
    end = asError(error).message;
    if (isHandoffTimeoutError(error)) status = 'timeout';
    throw error;
  } finally {
    clock.clearTimeout(timer);
    stopListening();
    server?.end(end);
    if (server) emit({ type: 'handoff-answered', sessionId, status });
    // Commands of a lease that is over fail with its connection.
    hold.end({ isOver: lease.signal.aborted || ended.isAborted });
    letGo?.();
    questions?.close();
    over.dispose();
  }
}

const ENDS = {
  done: 'The program goes on: the answer was "Done".',
  declined: 'The program goes on: the answer was "Cannot be done".',
} as const;

/** The browser over connections of our own. */
function pictured(openCdp: OpenCdp, signal: AbortSignal): PicturedBrowser {
  const source: PicturedBrowser['source'] = async (listeners) =>
    new CdpClient(await openCdp(signal), listeners);
  return { source, pictures: new BrowserPictures(source) };
}
