import type { ConnectOptions } from 'puppeteer-core';
import type { Connector } from '../connect/connector.js';
import { puppeteer, type PuppeteerHandles, type PuppeteerOptions } from '../connect/puppeteer.js';
import type { BrowserPool } from '../service/browser-pool.js';
import { mapPooledBrowsers as map, type Outcomes } from './map-pooled-browsers.js';
import type { MapOptions } from './options.js';
import type { TaskCallback } from './outcome.js';

/** Options of `mapPooledBrowsers` for Puppeteer. @interface */
export type PuppeteerMapOptions = MapOptions<ConnectOptions> & PuppeteerOptions;

/**
 * `mapPooledBrowsers` for Puppeteer. `protocol: 'bidi'` uses WebDriver BiDi, with `isolation` `'context'` or `'none'`.
 *
 * @param fn The task, called with `{ browser, context, page, input, index, session, signal, attempt }`.
 */
export function mapPooledBrowsers<Input, Value>(
  pool: BrowserPool | string,
  inputs: Iterable<Input> | AsyncIterable<Input>,
  fn: TaskCallback<PuppeteerHandles<'new'>, Input, Value>,
  { puppeteer: library, ...options }: PuppeteerMapOptions = {},
): Outcomes<Input, Value> {
  // Every workspace has a context.
  const connector = puppeteer({ puppeteer: library }) as Connector as Connector<PuppeteerHandles<'new'>>;
  return map(pool, inputs, fn, { ...options, connector });
}
