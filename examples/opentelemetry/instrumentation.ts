/**
 * Creates OpenTelemetry spans for pooled-browser from its tracing channels. Copy this file, and call
 * `instrumentPooledBrowser` once, with the context manager of your SDK.
 */
import type { AsyncLocalStorage } from 'node:async_hooks';
import { tracingChannel } from 'node:diagnostics_channel';
import { context, SpanStatusCode, trace, type Context, type Span } from '@opentelemetry/api';
import type { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import type { Stage, StageTrace } from 'pooled-browser';

const SPANS: Readonly<Record<Stage, string>> = {
  acquire: 'browser.acquire',
  connect: 'browser.connect',
  callback: 'browser.run',
  cleanup: 'browser.cleanup',
  replays: 'browser.replays',
  release: 'browser.release',
};

/** Creates a span for each stage, as a child of the active span. Returns a function that unsubscribes. */
export function instrumentPooledBrowser(contextManager: AsyncLocalStorageContextManager): () => void {
  // The store has no public accessor. TypeScript reports an error if this property disappears.
  const store: AsyncLocalStorage<Context> = contextManager['_asyncLocalStorage'];
  const stops = Object.keys(SPANS).map((stage) => instrumentStage(stage as Stage, store));
  return () => stops.forEach((stop) => stop());
}

function instrumentStage(stage: Stage, store: AsyncLocalStorage<Context>): () => void {
  const channel = tracingChannel<Context, StageTrace>(`pooled-browser:${stage}`);
  const tracer = trace.getTracer('pooled-browser');
  const spans = new WeakMap<object, Span>();

  // The span is active inside the stage, for example in your callback.
  channel.start.bindStore(store, (stageTrace) => {
    const span = tracer.startSpan(SPANS[stage], { attributes: describe(stageTrace) });
    spans.set(stageTrace, span);
    return trace.setSpan(context.active(), span);
  });

  const subscribers = {
    start: () => {},
    end: () => {},
    asyncStart: () => {},
    error: (stageTrace: StageTrace) => {
      const error = stageTrace.error instanceof Error ? stageTrace.error : String(stageTrace.error);
      spans.get(stageTrace)?.setStatus({ code: SpanStatusCode.ERROR }).recordException(error);
    },
    // Some attributes are known only at the end, such as the session of an acquire.
    asyncEnd: (stageTrace: StageTrace) => {
      spans.get(stageTrace)?.setAttributes(describe(stageTrace)).end();
    },
  };
  channel.subscribe(subscribers);
  return () => {
    channel.unsubscribe(subscribers);
    channel.start.unbindStore(store);
  };
}

/** Contains no URL, because the URLs of a session contain a JWT. */
function describe({ pool, run, attempt, sessionId }: StageTrace) {
  return {
    'browser_pool.name': pool,
    'browser_pool.run': run,
    'browser_pool.attempt': attempt,
    ...(sessionId !== undefined && { 'browser_pool.session_id': sessionId }),
  };
}
