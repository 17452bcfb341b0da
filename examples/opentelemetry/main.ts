/** Prints the spans of a lease, and of the callback, as a tree. */
import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { BrowserPool } from 'pooled-browser';
import { startLocalPool } from 'pooled-browser/local';
import { withPooledBrowser } from 'pooled-browser/playwright';
import { instrumentPooledBrowser } from './instrumentation.js';
import { SpanTree } from './span-tree.js';

const tree = new SpanTree();
const contextManager = new AsyncLocalStorageContextManager();
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [tree] }));
context.setGlobalContextManager(contextManager);
const stop = instrumentPooledBrowser(contextManager);
const tracer = trace.getTracer('shop');

// Uses the service that the environment names, or else starts a local pool.
await using local = process.env.BROWSER_POOL_BASE_URL ? undefined : await startLocalPool();
await using pool = new BrowserPool('default', { baseUrl: local?.baseUrl, token: local?.token });

await inSpan('nightly check', () =>
  withPooledBrowser(pool, async ({ page }) => {
    await inSpan('open the shop', () => page.goto('data:text/html,<title>Shop</title>'));
    throw new Error('The shop is closed.');
  }),
).catch(({ message }: Error) => console.log(`The run failed: ${message}`));

stop();
tree.print();

async function inSpan<Value>(name: string, work: () => Promise<Value>): Promise<Value> {
  return tracer.startActiveSpan(name, async (span) => work().finally(() => span.end()));
}
