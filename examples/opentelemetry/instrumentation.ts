/**
 * OpenTelemetry spans of what pooled-browser does, built on its tracing channels alone. Copy this file, and call
 * `instrumentPooledBrowser` once, with the context manager that your SDK uses.
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
  sweep: 'browser.sweep',
  replays: 'browser.replays',
  release: 'browser.release',
};

/** Makes a span of each stage, below the span that is active where the library is called. Returns how to stop it. */
export function instrumentPooledBrowser(contextManager: AsyncLocalStorageContextManager): () => void {
  // The API has no public way to its store; TypeScript says when this one is gone.
  const store: AsyncLocalStorage<Context> = contextManager['_asyncLocalStorage'];
  const stops = Object.keys(SPANS).map((stage) => instrumentStage(stage as Stage, store));
  return () => stops.forEach((stop) => stop());
}

function instrumentStage(stage: Stage, store: AsyncLocalStorage<Context>): () => void {
  const channel = tracingChannel<Context, StageTrace>(`pooled-browser:${stage}`);
  const tracer = trace.getTracer('pooled-browser');
  const spans = new WeakMap<object, Span>();

  // What runs inside the stage, your callback above all, sees its span as the active one.
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
    // Some facts are known at the end only: the session of an acquire.
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

/** No URL among them: those of a session carry a jwt. */
function describe({ pool, run, attempt, sessionId }: StageTrace) {
  return {
    'browser_pool.name': pool,
    'browser_pool.run': run,
    'browser_pool.attempt': attempt,
    ...(sessionId !== undefined && { 'browser_pool.session_id': sessionId }),
  };
}
