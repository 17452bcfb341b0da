import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { Socket } from '../../src/connect/socket.js';
import { ConnectError } from '../../src/index.js';
import {
  accept,
  acceptWith,
  answerWith,
  FaultRoad,
  ignore,
  refuse,
  textFrame,
} from '../support/fault-road.js';
import { JWT, UNREACHABLE } from '../support/fake-service.js';
import { rejection } from '../service/support.js';
import { PlayedBrowser, settle, until } from '../support/played-browser.js';

const never = new AbortController().signal;

let browser: PlayedBrowser;
let road: FaultRoad;

beforeEach(async () => {
  browser = await PlayedBrowser.start({ perMessageDeflate: true });
  road = await FaultRoad.start();
});

afterEach(async () => {
  await browser[Symbol.asyncDispose]();
  await road[Symbol.asyncDispose]();
});

describe('an open socket', () => {
  it('passes text and binary messages in both directions', async () => {
    const { socket, client } = await browser.connect();
    const seen: [string, boolean][] = [];
    socket.onMessage = (data, isBinary) => seen.push([String(data), isBinary]);
    client.send('{"a":1}');
    client.send(Buffer.from('{"b":2}'), { binary: true });
    await expect
      .poll(() => seen)
      .toEqual([
        ['{"a":1}', false],
        ['{"b":2}', true],
      ]);
    const kinds: boolean[] = [];
    client.on('message', (_data, isBinary) => kinds.push(isBinary));
    socket.send('text');
    socket.send(Buffer.from('bytes'), true);
    socket.send(Buffer.from('a text in bytes'));
    await expect.poll(() => browser.received).toEqual(['text', 'bytes', 'a text in bytes']);
    expect(kinds).toEqual([false, true, false]);
  });

  it('passes a screenshot of a large page, uncompressed', async () => {
    const { socket, client } = await browser.connect();
    const sizes: number[] = [];
    socket.onMessage = (data) => sizes.push(String(data).length);
    const message = `{"data":"${'x'.repeat(5_000_000)}"}`;
    client.send(message);
    await expect.poll(() => sizes).toEqual([message.length]);
    expect(client.extensions).toBe('');
  });

  it('passes text that is not valid UTF-8, because a page may contain half of a surrogate pair', async () => {
    const { socket, client } = await browser.connect();
    let count = 0;
    socket.onMessage = () => count++;
    client.send(Buffer.concat([Buffer.from('{"half":"'), Buffer.from([0xd8]), Buffer.from('"}')]), {
      binary: false,
    });
    await expect.poll(() => count).toBe(1);
  });

  it('delivers one message per task, so that promises settle before the next message', async () => {
    road.play(acceptWith(Buffer.concat([textFrame('{"id":1}'), textFrame('{"id":2}')])));
    const socket = await Socket.open(`ws://${road.host}/`, never);
    const order: string[] = [];
    socket.onMessage = async (data) => {
      order.push(String(data));
      for (let turn = 0; turn < 10; turn++) await Promise.resolve();
      order.push('done');
    };
    await expect.poll(() => order).toEqual(['{"id":1}', 'done', '{"id":2}', 'done']);
    socket.cut('closed-by-us');
    await socket.ended;
  });
});

describe('the end of a socket', () => {
  it.each([
    [1000, '', 'closed-by-service'],
    [1001, 'going away', 'closed-by-service'],
    [1001, 'session expired', 'expired'],
    [1001, 'inactivity', 'expired'],
    [1001, 'Timeout', 'expired'],
    [4000, 'idle timeout', 'expired'],
    [4000, 'timed out', 'expired'],
  ])('after a close frame with %i %j is reported as %s', async (code, reason, expected) => {
    const { socket, client } = await browser.connect();
    client.close(code, reason);
    expect(await socket.ended).toBe(expected);
  });

  it('without a close frame is reported as dropped', async () => {
    const { socket, client } = await browser.connect();
    client.terminate();
    expect(await socket.ended).toBe('dropped');
  });

  it('follows invalid frames immediately, and is reported as dropped', async () => {
    road.play(acceptWith(Buffer.alloc(64, 0xff)));
    const socket = await Socket.open(`ws://${road.host}/`, never);
    const began = performance.now();
    expect(await socket.ended).toBe('dropped');
    // Otherwise the heartbeat would end the socket after ten seconds.
    expect(performance.now() - began).toBeLessThan(7000);
  });

  it('is reported with its first reason', async () => {
    const first = await browser.connect();
    first.socket.close('closed-by-callback');
    first.socket.close('closed-by-us');
    first.socket.cut('dropped');
    expect(await first.socket.ended).toBe('closed-by-callback');
    const second = await browser.connect();
    second.socket.cut('closed-by-us');
    second.socket.cut('dropped');
    second.socket.close('closed-by-callback');
    expect(await second.socket.ended).toBe('closed-by-us');
  });

  it('uses the closing handshake for close(), and none for cut()', async () => {
    const closed = await browser.connect();
    closed.socket.close('closed-by-us');
    expect((await once(closed.client, 'close'))[0]).toBe(1000);
    const cut = await browser.connect();
    cut.socket.cut('closed-by-us');
    expect((await once(cut.client, 'close'))[0]).toBe(1006);
  });

  it('does not wait for a server that never answers the close frame', async () => {
    road.play(accept);
    const socket = await Socket.open(`ws://${road.host}/`, never);
    const began = performance.now();
    socket.close('closed-by-us');
    expect(await socket.ended).toBe('closed-by-us');
    // The socket waits one second; ws alone would wait thirty.
    expect(performance.now() - began).toBeGreaterThan(500);
    expect(performance.now() - began).toBeLessThan(15_000);
  });

  it('gives the server time to answer the close frame', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const { socket, client } = await browser.connect();
    let hasEnded = false;
    void socket.ended.then(() => (hasEnded = true));
    client.pause();
    socket.close('closed-by-us');
    await vi.advanceTimersByTimeAsync(900);
    await settle();
    expect(hasEnded).toBe(false);
    client.resume();
    expect((await once(client, 'close'))[0]).toBe(1000);
  });

  it('drops messages that are sent after it, without an error', async () => {
    const { socket } = await browser.connect();
    socket.close('closed-by-us');
    socket.send('too late');
    await socket.ended;
    socket.send('too late');
    socket.close('dropped');
    await settle();
    expect(browser.received).toEqual([]);
  });

  it('leaves no timer, whichever side closes', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const { socket, client } = await browser.connect();
    client.close(1000);
    await socket.ended;
    const second = await browser.connect();
    second.socket.close('closed-by-us');
    await second.socket.ended;
    await until(() => vi.getTimerCount() === 0);
  });
});

describe('a message that is not JSON', () => {
  it.each(['hello', '[1]', 'null', '"{"'])('ends the socket and is not delivered: %s', async (text) => {
    const { socket, client } = await browser.connect();
    let count = 0;
    socket.onMessage = () => count++;
    client.send(text);
    expect(await socket.ended).toBe('dropped');
    expect(count).toBe(0);
  });

  it('ends the socket when the receiver throws or rejects because of it', async () => {
    for (const read of [(text: string) => void JSON.parse(text), async (text: string) => JSON.parse(text)]) {
      const { socket, client } = await browser.connect();
      socket.onMessage = (data) => read(String(data));
      client.send('{"cut":');
      expect(await socket.ended).toBe('dropped');
    }
  });

  it('does not hide an error that the receiver throws for a valid message', async () => {
    const { socket, client } = await browser.connect();
    const mine = new Error('mine');
    const others = process.rawListeners('unhandledRejection');
    process.removeAllListeners('unhandledRejection');
    const unhandled = once(process, 'unhandledRejection');
    socket.onMessage = () => {
      throw mine;
    };
    client.send('{"good":true}');
    expect((await unhandled)[0]).toBe(mine);
    for (const listener of others) process.on('unhandledRejection', listener as never);
    socket.close('closed-by-us');
    // If the message had ended the socket, the reason would differ.
    expect(await socket.ended).toBe('closed-by-us');
  });
});

it('measures the round trip with a ping', async () => {
  const { socket, client } = await browser.connect();
  const received = new Promise<void>((resolve) => {
    socket.onMessage = () => resolve();
  });
  client.pong('');
  client.send('{}');
  await received;
  expect(socket.roundTrip).toBeUndefined();
  socket.ping();
  await expect.poll(() => socket.roundTrip).toBeGreaterThan(0);
  socket.close('closed-by-us');
  await socket.ended;
});

describe('a heartbeat', () => {
  const INTERVAL = 2500;

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  it('keeps an idle socket open while the other side answers pings', async () => {
    const { socket, client } = await browser.connect();
    let pings = 0;
    client.on('ping', () => pings++);
    for (let beat = 1; beat <= 8; beat++) {
      vi.advanceTimersByTime(INTERVAL);
      await expect.poll(() => pings).toBe(beat);
      await settle();
    }
    socket.close('closed-by-us');
    expect(await socket.ended).toBe('closed-by-us');
  });

  it('keeps a socket open that receives messages, even without pongs', async () => {
    const silent = await PlayedBrowser.start({ autoPong: false });
    const { socket, client } = await silent.connect();
    let count = 0;
    socket.onMessage = () => count++;
    for (let beat = 1; beat <= 8; beat++) {
      client.send('{}');
      await expect.poll(() => count).toBe(beat);
      vi.advanceTimersByTime(INTERVAL);
    }
    socket.close('closed-by-us');
    expect(await socket.ended).toBe('closed-by-us');
    await silent[Symbol.asyncDispose]();
  });

  it('ends a socket after three unanswered pings in a row, and no earlier', async () => {
    road.play(accept);
    const socket = await Socket.open(`ws://${road.host}/`, never);
    let end: string | undefined;
    void socket.ended.then((reason) => (end = reason));
    // The first ping counts the upgrade as an answer.
    vi.advanceTimersByTime(3 * INTERVAL);
    await settle();
    expect(end).toBeUndefined();
    vi.advanceTimersByTime(INTERVAL);
    expect(await socket.ended).toBe('dropped');
  });

  it('stops with its socket', async () => {
    const { socket } = await browser.connect();
    expect(vi.getTimerCount()).toBe(1);
    socket.cut('closed-by-us');
    await socket.ended;
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('opening a socket', () => {
  it.each([
    [403, {}],
    [302, { location: 'ws://127.0.0.1:1/' }],
  ])('fails with the status %i of a refused upgrade', async (status, headers) => {
    road.play(refuse(status, headers));
    const error = await rejection(Socket.open(`ws://${road.host}/`, never));
    expect(error).toBeInstanceOf(ConnectError);
    expect(error).toMatchObject({ status, message: expect.stringContaining(`status ${status}`) });
    expect(road.dialled).toBe(1);
  });

  it.each<[string, string, string | RegExp]>([
    [
      'the JSON message',
      JSON.stringify({ code: 'not_implemented', message: 'Install\r\n\u001b[31mchromium-bidi\u001b[0m' }),
      /^The WebSocket upgrade was refused with status 501: Install chromium-bidi\.$/,
    ],
    ['the beginning of the text', `No. ${'x'.repeat(100_000)}`, /status 501: No\. x{190,200}…$/],
    ['no secret', `?jwt=${JWT}`, /status 501: \?jwt=\[redacted\]$/],
  ])('fails with %s of the response', async (_what, body, message) => {
    road.play(answerWith(`HTTP/1.1 501 No\r\ncontent-length: ${body.length}\r\n\r\n${body}`));
    const error = await rejection(Socket.open(`ws://${road.host}/`, never));
    expect(error.message).toMatch(message);
  });

  it('does not wait for an endless body', async () => {
    road.play((socket) => void socket.write('HTTP/1.1 503 No\r\n\r\nDown'));
    const error = await rejection(Socket.open(`ws://${road.host}/`, never));
    expect(error.message).toBe('The WebSocket upgrade was refused with status 503: Down.');
  });

  it('fails with the cause if nothing listens', async () => {
    const error = await rejection(Socket.open(UNREACHABLE.replace('http', 'ws'), never));
    expect(error).toBeInstanceOf(ConnectError);
    expect(error.cause).toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('opens nothing after an abort', async () => {
    const reason = new Error('stop');
    await expect(Socket.open(browser.url, AbortSignal.abort(reason))).rejects.toBe(reason);
    expect(browser.dialled).toBe(0);
  });

  it('rejects on abort, and leaves nothing open', async () => {
    road.play(ignore);
    const caller = new AbortController();
    const opening = rejection(Socket.open(`ws://${road.host}/`, caller.signal));
    await expect.poll(() => road.dialled).toBe(1);
    caller.abort();
    expect(await opening).toBeInstanceOf(ConnectError);
  });

  it('ignores an abort after the socket is open', async () => {
    const caller = new AbortController();
    const socket = await Socket.open(browser.url, caller.signal);
    caller.abort();
    socket.send('still here');
    await expect.poll(() => browser.received).toEqual(['still here']);
    socket.close('closed-by-us');
    expect(await socket.ended).toBe('closed-by-us');
  });
});
