import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ConnectError, type BrowserPool } from '../../src/index.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { PlayedLease } from '../support/played-lease.js';
import { rejection } from '../service/support.js';

let played: PlayedLease;

beforeEach(async () => {
  played = await PlayedLease.start();
});

afterEach(() => played[Symbol.asyncDispose]());

const refuse = () => Promise.reject(new Error('my own copy'));

/** Each call passes its own copy of the library, which connects to nothing. */
const WAYS: Record<string, (pool: BrowserPool) => Promise<unknown>> = {
  'Playwright, withPooledBrowser': (pool) =>
    playwright.withPooledBrowser(pool, () => {}, { chromium: { connectOverCDP: refuse }, name: 'n' }),
  'Playwright, leaseBrowser': (pool) =>
    playwright.leaseBrowser(pool, { chromium: { connectOverCDP: refuse }, name: 'n' }),
  'Puppeteer, withPooledBrowser': (pool) =>
    puppeteer.withPooledBrowser(pool, () => {}, { puppeteer: { connect: refuse }, name: 'n' }),
  'Puppeteer, leaseBrowser': (pool) =>
    puppeteer.leaseBrowser(pool, { puppeteer: { connect: refuse }, name: 'n' }),
};

describe.each(Object.entries(WAYS))('%s', (way, call) => {
  it("uses the caller's own copy of the library, and passes on all other options", async () => {
    const error = await rejection(call(played.pool));
    expect(error).toBeInstanceOf(ConnectError);
    expect(error).toMatchObject({ cause: { message: 'my own copy' } });
    expect(error.message).toContain(way.split(',')[0]!.toLowerCase());
    expect(played.service.of('acquire').map(({ body }) => body?.['name'])).toEqual(['n', 'n']);
  });
});
