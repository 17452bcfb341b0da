import { context, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
} from '@opentelemetry/sdk-trace-base';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { instrumentPooledBrowser } from '../../examples/opentelemetry/instrumentation.js';
import { leaseBrowser, withPooledBrowser } from '../../src/playwright.js';
import { FaultBench } from '../support/fault-bench.js';
import { refuse, join } from '../support/fault-road.js';
import { useLocalPool } from '../support/local.js';

const used = useLocalPool();
const exporter = new InMemorySpanExporter();
let stop: () => void;

beforeAll(() => {
  const contextManager = new AsyncLocalStorageContextManager();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  trace.setGlobalTracerProvider(provider);
  context.setGlobalContextManager(contextManager);
  stop = instrumentPooledBrowser(contextManager);
});
afterEach(() => exporter.reset());
afterAll(() => {
  stop();
  trace.disable();
  context.disable();
});

it('creates a span for each stage below the active span, and spans of the callback are children of the run', async () => {
  const { session } = await inSpan('caller', () =>
    withPooledBrowser(used.pool, ({ page }) => inSpan('mine', () => page.title())),
  );
  expect(parents()).toEqual({
    'browser.acquire': 'caller',
    'browser.connect': 'caller',
    'browser.run': 'caller',
    mine: 'browser.run',
    'browser.cleanup': 'caller',
    'browser.replays': 'caller',
    'browser.release': 'caller',
    caller: undefined,
  });
  const ids = exporter.getFinishedSpans().map((span) => span.spanContext().traceId);
  expect(new Set(ids).size).toBe(1);
  for (const { name, attributes } of exporter.getFinishedSpans()) {
    if (!name.startsWith('browser.')) continue;
    expect(attributes).toEqual({
      'browser_pool.name': 'test',
      'browser_pool.run': expect.any(Number),
      'browser_pool.attempt': 1,
      'browser_pool.session_id': session.session_id,
    });
  }
});

it('keeps the spans of concurrent leases separate', async () => {
  await Promise.all(
    ['one', 'two'].map((name) =>
      inSpan(name, () => withPooledBrowser(used.pool, () => inSpan(`in ${name}`, async () => {}))),
    ),
  );
  const spans = exporter.getFinishedSpans();
  for (const name of ['one', 'two']) {
    const run = parentOf(spans.find((span) => span.name === `in ${name}`)!);
    expect([run?.name, parentOf(run!)?.name]).toEqual(['browser.run', name]);
  }
});

it('creates a connect span for each lease of one call', async () => {
  await using bench = await FaultBench.start(used.local);
  bench.road.play(refuse(503), join);
  const browser = await leaseBrowser(bench.pool);
  await browser.release();
  const connects = exporter.getFinishedSpans().filter(({ name }) => name === 'browser.connect');
  expect(connects.map(({ status, attributes }) => [status.code, attributes['browser_pool.attempt']])).toEqual(
    [
      [SpanStatusCode.ERROR, 1],
      [SpanStatusCode.UNSET, 2],
    ],
  );
  expect(connects[0]!.attributes).not.toHaveProperty('browser_pool.session_id', browser.session.session_id);
  // Whatever an exporter could send: no address, and no secret.
  const told = exporter
    .getFinishedSpans()
    .map(({ name, attributes, events }) => ({ name, attributes, events }));
  expect(JSON.stringify(told)).not.toMatch(/jwt=(?!\[redacted\])|canary|eyJ/);
});

async function inSpan<Value>(name: string, work: () => Promise<Value>): Promise<Value> {
  return trace.getTracer('test').startActiveSpan(name, async (span) => work().finally(() => span.end()));
}

/** Name of each span's parent. */
function parents(): Record<string, string | undefined> {
  const spans = exporter.getFinishedSpans();
  return Object.fromEntries(spans.map((span) => [span.name, parentOf(span)?.name]));
}

function parentOf({ parentSpanContext }: ReadableSpan): ReadableSpan | undefined {
  return exporter.getFinishedSpans().find((span) => span.spanContext().spanId === parentSpanContext?.spanId);
}
