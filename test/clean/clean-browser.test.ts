import { describe, expect, it, vi } from 'vitest';
import type { CdpPort } from '../../src/wire/client.js';
import { writtenMessage } from '../../src/wire/message.js';
import { cleanBrowser } from '../../src/clean/clean-browser.js';
import { SiteDataCleaner } from '../../src/clean/site-data.js';
import { rejection } from '../pool/support.js';
import { stopClock, useFakeClock, useFastClock } from '../support/fake-clock.js';
import { HISTOGRAMS } from '../support/histograms.js';

const USED = {
  isOwnContextUsed: true,
  hasHttpLogin: false,
  extensions: new Set<string>(),
  canBeDestroyed: true,
};

describe('a browser', () => {
  useFastClock();

  interface Command {
    id: number;
    method: string;
    params: Record<string, unknown>;
    sessionId?: string;
  }

  interface Target {
    targetId: string;
    type: string;
    browserContextId: string;
    url: string;
  }

  /** A browser with two contexts: its own, with a page, and one of the lease, with a page. */
  class Played implements CdpPort {
    targets: Target[] = [
      { targetId: 'old', type: 'page', browserContextId: 'own', url: '' },
      { targetId: 'other', type: 'page', browserContextId: 'of the lease', url: '' },
    ];
    histograms: readonly object[] = HISTOGRAMS;
    readonly sent: string[] = [];
    /** A command that the browser refuses. */
    refused = '';
    end!: () => void;
    readonly ended = new Promise<void>((resolve) => (this.end = resolve));

    onEvent: Parameters<CdpPort['listen']>[0] = () => {};

    listen(onEvent: Parameters<CdpPort['listen']>[0]): void {
      this.onEvent = onEvent;
    }

    close(): void {}

    request(command: Parameters<CdpPort['request']>[0], settle: Parameters<CdpPort['request']>[1]): void {
      const { id, method, params, sessionId } = command as Command;
      const { browserContextId, targetId, origin } = params;
      const subject = browserContextId ?? targetId ?? origin;
      this.sent.push([method, subject, sessionId].filter(Boolean).join(' '));
      const isRefused = method === this.refused;
      const answer = isRefused ? { error: { message: 'no' } } : { result: this.#run(method, subject) };
      queueMicrotask(() => settle(writtenMessage({ id, ...answer })));
    }

    #run(method: string, subject: unknown): object {
      const without = (isGone: (target: Target) => boolean) =>
        void (this.targets = this.targets.filter((target) => !isGone(target)));
      if (method === 'Target.getBrowserContexts') return { browserContextIds: ['of the lease'] };
      if (method === 'Target.disposeBrowserContext') without((one) => one.browserContextId === subject);
      if (method === 'Target.closeTarget') {
        without((one) => one.targetId === subject);
        const event = { method: 'Target.targetDestroyed', params: { targetId: subject } };
        queueMicrotask(() => this.onEvent(writtenMessage(event)));
      }
      if (method === 'Target.createTarget')
        this.targets.push({ targetId: 'new', type: 'page', browserContextId: 'own', url: '' });
      if (method === 'Browser.getHistograms') return { histograms: this.histograms };
      const ids = { browserContextId: 'new context', targetId: 'new', sessionId: 'session' };
      return { targetInfos: this.targets, ...ids, cookies: [], extensions: [], result: {} };
    }
  }

  it('disposes of the contexts of a lease, and leaves the own context untouched if it was not used', async () => {
    const browser = new Played();
    await cleanBrowser(browser, { ...USED, isOwnContextUsed: false });
    expect(browser.sent).toEqual([
      'Target.getBrowserContexts',
      'Extensions.getExtensions',
      'Target.disposeBrowserContext of the lease',
      'Target.getTargets',
    ]);
  });

  it('leaves one new page in the own context, without data and permissions', async () => {
    const browser = new Played();
    await cleanBrowser(browser, USED);
    expect(browser.targets).toMatchObject([{ targetId: 'new' }]);
    // The browser could end with its last page.
    const order = ['Target.createTarget', 'Target.closeTarget old'].map((one) => browser.sent.indexOf(one));
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    for (const command of [
      'Storage.clearDataForOrigin * session',
      'Network.clearBrowserCache session',
      'Browser.resetPermissions',
    ])
      expect(browser.sent.indexOf(command), command).toBeGreaterThan(order[1]!);
  });

  it('accepts a page that needs long to close', async () => {
    const browser = new Played();
    const advance = stopClock();
    const request = browser.request.bind(browser);
    browser.request = (command, settle) => {
      if (command.method === 'Target.closeTarget') advance(4000);
      request(command, settle);
    };
    await cleanBrowser(browser, USED);
    expect(browser.targets).toMatchObject([{ targetId: 'new' }]);
  });

  it('fails if a page or a worker of the lease is left, or if the browser refuses a command', async () => {
    const late = (type: string) => {
      const browser = new Played();
      browser.targets.push({ targetId: 'late', type, browserContextId: 'of nobody', url: '' });
      browser.refused = 'Target.closeTarget';
      return rejection(cleanBrowser(browser, USED));
    };
    expect((await late('service_worker')).message).toContain('still running');
    expect((await late('shared_worker')).message).toContain('shared worker');
    const stubborn = new Played();
    stubborn.refused = 'Storage.clearDataForOrigin';
    expect((await rejection(cleanBrowser(stubborn, USED))).message).toBe('no');
  });

  it('waits until the first download of a browser has ended, which its context would end uncounted', async () => {
    const browser = new Played();
    browser.histograms = [];
    const request = browser.request.bind(browser);
    let looks = 0;
    browser.request = (command, settle) => {
      request(command, settle);
      if (command.method === 'Runtime.evaluate') looks = 0;
      if (command.method === 'Browser.getHistograms') looks++;
      const isOpen = !browser.sent.includes('Target.disposeBrowserContext new context');
      if (isOpen && looks > 6) browser.histograms = HISTOGRAMS;
    };
    await cleanBrowser(browser, USED);
    expect(browser.sent).toContain('Target.disposeBrowserContext new context');
  });

  it.each([
    ['no statistics', () => []],
    ['keepalive requests under another name', () => HISTOGRAMS.filter(({ name }) => !/Started/.test(name))],
    ['downloads under another name', () => HISTOGRAMS.filter(({ name }) => name !== 'Download.Counts')],
    ['other numbers', () => HISTOGRAMS.map((one) => ({ ...one, buckets: [{ low: 1, count: 1 }] }))],
  ])('counts a browser as unclean that has %s', async (_what, histograms) => {
    const browser = new Played();
    browser.histograms = histograms();
    const error = await rejection(cleanBrowser(browser, USED));
    expect(error.message).toContain('does not count');
    // It was asked to count one of each, in a context of its own.
    expect(browser.sent).toContain('Target.createBrowserContext');
    expect(browser.sent).toContain('Target.disposeBrowserContext new context');
  });

  it('fails if an end has another name', async () => {
    const browser = new Played();
    browser.histograms = HISTOGRAMS.filter(({ name }) => !/Succeeded/.test(name));
    const error = await rejection(cleanBrowser(browser, USED));
    expect(error.message).toContain('still open');
  });

  it('fails if the WebSocket ends meanwhile', async () => {
    const browser = new Played();
    browser.request = (_command, settle) => {
      browser.end();
      settle(undefined);
    };
    expect((await rejection(cleanBrowser(browser, USED))).message).toContain('ended');
  });
});

it('fails if the page does not become blank in time', async () => {
  useFakeClock({ toFake: ['setTimeout', 'clearTimeout'] });
  const cleaner = new SiteDataCleaner(async () => ({ histograms: HISTOGRAMS }));
  const clearing = rejection(cleaner.clear());
  vi.advanceTimersByTime(2000);
  expect((await clearing).message).toContain('did not respond within 2 s');
});
