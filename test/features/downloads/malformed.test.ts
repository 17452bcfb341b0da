import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { PlayedLease } from '../../support/played-lease.js';

const WILL_BEGIN = 'Browser.downloadWillBegin';
const PROGRESS = 'Browser.downloadProgress';
const whole = { guid: 'one', url: 'https://example.com/a', suggestedFilename: 'a', frameId: 'F' };
const progress = { guid: 'one', totalBytes: 1, receivedBytes: 1 };

/** Events of a hostile peer about downloads. */
const EVENTS = [
  { method: WILL_BEGIN, params: { ...whole, url: null } },
  { method: WILL_BEGIN, params: { ...whole, suggestedFilename: 7 } },
  { method: WILL_BEGIN, params: { ...whole, guid: undefined } },
  { method: WILL_BEGIN, params: null },
  { method: WILL_BEGIN, params: whole },
  { method: PROGRESS, params: { ...progress, state: {}, totalBytes: 'many' } },
  { method: PROGRESS, params: { ...progress, state: 'completed', filePath: 7 } },
];

it('malformed events of downloads do not keep the browser leased', async () => {
  await using played = await PlayedLease.start();
  const folder = await mkdtemp(join(tmpdir(), 'pooled-browser-downloads-'));
  const send = async () => {
    for (const event of EVENTS) played.browser.clients[0]!.send(JSON.stringify(event));
    await sleep(20);
    return 'value';
  };
  const { run } = await played.run(send, { downloads: { folder, timeout: 50 } });
  expect(run).toMatchObject({ downloads: [] });
  expect(played.releases).toHaveLength(1);
  await rm(folder, { recursive: true });
});
