import type { ReadableSpan, SpanProcessor } from '@opentelemetry/sdk-trace-base';

/** Keeps spans in memory in the order of their start, and prints them as a tree. Use an exporter in your program. */
export class SpanTree implements SpanProcessor {
  readonly #spans: ReadableSpan[] = [];

  onStart(span: ReadableSpan): void {
    this.#spans.push(span);
  }

  onEnd(): void {}
  async forceFlush(): Promise<void> {}
  async shutdown(): Promise<void> {}

  print(parent?: ReadableSpan, indent = ''): void {
    for (const span of this.#spans) {
      if (span.parentSpanContext?.spanId !== parent?.spanContext().spanId) continue;
      const message = span.events[0]?.attributes?.['exception.message'];
      console.log(`${indent}${span.name}${message === undefined ? '' : `  (${String(message)})`}`);
      this.print(span, `${indent}  `);
    }
  }
}
