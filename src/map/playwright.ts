import type { ConnectOverCDPOptions } from 'playwright-core';
import { playwright, type PlaywrightHandles, type PlaywrightOptions } from '../connect/playwright.js';
import type { BrowserPool } from '../service/browser-pool.js';
import { mapPooledBrowsers as map, type Outcomes } from './map-pooled-browsers.js';
import type { MapOptions } from './options.js';
import type { TaskCallback } from './outcome.js';

/** Options of `mapPooledBrowsers` for Playwright. @interface */
export type PlaywrightMapOptions = MapOptions<ConnectOverCDPOptions, 'cdp'> & PlaywrightOptions;

/**
 * `mapPooledBrowsers` for Playwright.
 *
 * @param fn The task, called with `{ browser, context, page, input, index, session, signal, attempt }`.
 * @example
 *   for await (const { status, input, value } of mapPooledBrowsers('scrapers', urls, titleOf)) { … }
 */
export function mapPooledBrowsers<Input, Value>(
  pool: BrowserPool | string,
  inputs: Iterable<Input> | AsyncIterable<Input>,
  fn: TaskCallback<PlaywrightHandles, Input, Value>,
  { chromium, ...options }: PlaywrightMapOptions = {},
): Outcomes<Input, Value> {
  return map(pool, inputs, fn, { ...options, connector: playwright({ chromium }) });
}
