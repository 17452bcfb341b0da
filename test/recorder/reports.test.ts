import { expect, it } from 'vitest';
import type { CdpReceiver } from '../../src/net/cdp-connection.js';
import { PageEvents } from '../../src/recorder/page-events.js';
import { RecordedPages } from '../../src/recorder/recorded-pages.js';
import { Timeline } from '../../src/recorder/timeline.js';

/** Plays a browser whose page sends these events to a recording. Returns the entries of the timeline. */
async function record(...events: { method: string; params: object }[]): Promise<Timeline['entries']> {
  const timeline = new Timeline(undefined, () => 0);
  const pageEvents = new PageEvents(timeline);
  let receiver!: CdpReceiver;
  const pipe = {
    connect: async (given: CdpReceiver) => {
      receiver = given;
      return {
        send: ({ id }: { readonly id?: unknown }) => receiver.onMessage({ id, result: {} }),
        close: () => {},
      };
    },
  };
  const pictures = { watch: () => ({ stop: () => {}, hint: () => {}, take: async () => {} }) };
  const pages = await RecordedPages.open(
    { pipe, pictures: pictures as never },
    {
      interval: 1000,
      onPicture: () => {},
      onPage: (page) => pageEvents.enable(page),
      onEvent: (event) => pageEvents.add(event),
    },
  );
  const targetInfo = { targetId: 't', type: 'page', url: 'about:blank' };
  receiver.onMessage({ method: 'Target.attachedToTarget', params: { sessionId: 's', targetInfo } });
  for (const event of events) receiver.onMessage({ ...event, sessionId: 's' });
  pages.close();
  return timeline.entries.slice(1);
}

const report = (payload: string) => ({ method: 'Runtime.bindingCalled', params: { payload } });

it('ignores reports that are not its own: a client can open the world of the recorder', async () => {
  const strange = ['', '{', 'null', '[]', '"x"', '{"kind":"click"}'].map(report);
  expect(await record(...strange, report('{"kind":"click","text":"a"}'))).toEqual([
    { at: 0, kind: 'click', text: 'a' },
  ]);
});

const failure = (requestId: string, url: string) => [
  { method: 'Network.requestWillBeSent', params: { requestId, request: { url } } },
  { method: 'Network.loadingFailed', params: { type: 'Fetch', requestId, errorText: 'net::ERR_FAILED' } },
];

it('hides the values of secret parameters, also of many, in time in proportion to their number', async () => {
  const shown = async (query: string) => (await record(...failure('1', `http://a.test/?${query}`)))[0]?.text;
  expect(await shown('x=1&my-sig=a&my-sig=b&y=2')).toBe('http://a.test/?x=1&my-sig=hidden&my-sig=hidden&y=2');
  const time = async (parameters: number) => {
    const query = Array.from({ length: parameters }, (_, at) => `my-sig${at}=s`).join('&');
    const began = performance.now();
    expect(await shown(query)).toContain('my-sig0=');
    return performance.now() - began;
  };
  await time(1000);
  const one = await time(1000);
  // In proportion: 8 times; before, 64 times and more.
  expect(await time(8000)).toBeLessThan(30 * Math.max(one, 5));
});
