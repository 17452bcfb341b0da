import { once } from 'node:events';
import type { Socket as NetSocket } from 'node:net';
import { setImmediate as nextTask } from 'node:timers/promises';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { ConnectError } from '../../src/index.js';
import {
  accept,
  acceptWith,
  answerWith,
  FaultRoad,
  ignore,
  refuse,
  textFrame,
  type Upgrade,
} from '../support/fault-road.js';
import { JWT, UNREACHABLE } from '../support/fake-service.js';
import { rejection } from '../pool/support.js';
import type { Client } from '../../src/wire/client.js';
import { openClient, PlayedBrowser, settle, until } from '../support/played-browser.js';
import { useFakeClock } from '../support/fake-clock.js';
import { hideParameters } from '../../src/shared/redact.js';

const never = new AbortController().signal;

let browser: PlayedBrowser;
let road: FaultRoad;

beforeEach(async () => {
  browser = await PlayedBrowser.start({ perMessageDeflate: true });
  road = await FaultRoad.start();
  return async () => {
    await browser[Symbol.asyncDispose]();
    await road[Symbol.asyncDispose]();
  };
});

/** A socket to a server that handles the upgrade in this way. */
async function socketTo(upgrade: Upgrade): Promise<Client> {
  road.play(upgrade);
  return openClient(new URL(`ws://${road.host}/`), never);
}

/** Two ends of a socket, and the messages that arrived, with their kind and length. */
async function connected(server = browser) {
  const { wire, socket, client } = await server.connect();
  const seen: [data: string, isBinary: boolean][] = [];
  socket.onMessage = (data, isBinary) => void seen.push([String(data), isBinary]);
  return { wire, socket, client, seen };
}

describe('an open socket', () => {
  it('passes text and binary messages in both directions', async () => {
    const { socket, client, seen } = await connected();
    client.send('{"method":"A.a"}');
    client.send(Buffer.from('{"method":"A.b"}'), { binary: true });
    client.send(' \r\n\t{"method":"A.c"}\n');
    await expect.poll(() => seen.length).toBe(3);
    expect(seen).toEqual([
      ['{"method":"A.a"}', false],
      ['{"method":"A.b"}', true],
      [' \r\n\t{"method":"A.c"}\n', false],
    ]);
    const kinds: boolean[] = [];
    client.on('message', (_data, isBinary) => kinds.push(isBinary));
    socket.send('text');
    socket.send(Buffer.from('bytes'), true);
    socket.send(Buffer.from('a text in bytes'));
    await expect.poll(() => browser.received).toEqual(['text', 'bytes', 'a text in bytes']);
    expect(kinds).toEqual([false, true, false]);
  });

  it('passes a screenshot of a large page uncompressed, and half of a surrogate pair, which is no UTF-8', async () => {
    const { client, seen } = await connected();
    const screenshot = `{"method":"A.a","params":{"data":"${'x'.repeat(5_000_000)}"}}`;
    client.send(screenshot);
    const half = Buffer.concat([
      Buffer.from('{"method":"A.half","params":{"a":"'),
      Buffer.from([0xd8]),
      Buffer.from('"}}'),
    ]);
    client.send(half, { binary: false });
    await expect.poll(() => seen.length).toBe(2);
    expect(seen[0]![0] === screenshot).toBe(true);
    expect(client.extensions).toBe('');
  });

  it('delivers one message per task, so that promises settle before the next message', async () => {
    const socket = await socketTo(
      acceptWith(Buffer.concat([textFrame('{"method":"A.1"}'), textFrame('{"method":"A.2"}')])),
    );
    const order: string[] = [];
    socket.onMessage = async (data) => {
      order.push(String(data));
      for (let count = 0; count < 10; count++) await Promise.resolve();
      order.push('done');
    };
    await expect.poll(() => order).toEqual(['{"method":"A.1"}', 'done', '{"method":"A.2"}', 'done']);
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

  it('without a close frame, or after invalid frames, is reported as dropped', async () => {
    const { socket, client } = await browser.connect();
    client.terminate();
    expect(await socket.ended).toBe('dropped');
    const garbled = await socketTo(acceptWith(Buffer.alloc(64, 0xff)));
    const began = performance.now();
    expect(await garbled.ended).toBe('dropped');
    // Otherwise the heartbeat would end the socket after ten seconds.
    expect(performance.now() - began).toBeLessThan(7000);
  });

  it('is reported with its first reason; close() uses the closing handshake, and cut() does not', async () => {
    const closed = await browser.connect();
    closed.socket.close('closed-by-callback');
    closed.socket.close('closed-by-us');
    closed.socket.cut('dropped');
    expect(await closed.socket.ended).toBe('closed-by-callback');
    const cut = await browser.connect();
    cut.socket.cut('closed-by-us');
    cut.socket.cut('dropped');
    cut.socket.close('closed-by-callback');
    expect((await once(cut.client, 'close'))[0]).toBe(1006);
    expect(await cut.socket.ended).toBe('closed-by-us');
    const { socket, client } = await browser.connect();
    socket.close('closed-by-us');
    expect((await once(client, 'close'))[0]).toBe(1000);
  });

  it('waits one second for the server to answer the close frame', async () => {
    useFakeClock({ toFake: ['setTimeout', 'clearTimeout'] });
    const { socket, client } = await browser.connect();
    const silent = await socketTo(accept);
    const ends: string[] = [];
    for (const one of [socket, silent]) void one.ended.then((reason) => ends.push(reason));
    client.pause();
    socket.close('closed-by-callback');
    silent.close('closed-by-us');
    await vi.advanceTimersByTimeAsync(999);
    await settle();
    expect(ends).toEqual([]);
    client.resume();
    expect((await once(client, 'close'))[0]).toBe(1000);
    await socket.ended;
    await vi.advanceTimersByTimeAsync(1);
    await silent.ended;
    expect(ends).toEqual(['closed-by-callback', 'closed-by-us']);
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
    useFakeClock({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
    for (const how of ['closed by the browser', 'close', 'cut'] as const) {
      const { socket, client } = await browser.connect();
      expect(vi.getTimerCount()).toBeGreaterThan(0);
      if (how === 'closed by the browser') client.close(1000);
      else socket[how]('closed-by-us');
      await socket.ended;
      await until(() => vi.getTimerCount() === 0);
    }
  });
});

it('can be taken from the library, which then neither receives, sends nor closes', async () => {
  const { wire, socket, client, seen } = await connected();
  const carrier = wire.takeOver();
  await socket.detached;
  const ours: unknown[] = [];
  carrier.listen(({ method }) => ours.push(method));
  socket.send('{"from":"library"}');
  socket.close('closed-by-callback');
  carrier.request({ id: 1, method: 'A.fromUs' }, () => {});
  client.send('{"method":"A.toUs"}');
  await expect.poll(() => ours).toEqual(['A.toUs']);
  expect([seen, browser.received]).toEqual([[], ['{"id":1,"method":"A.fromUs"}']]);
  socket.cut('closed-by-us');
  expect(await socket.ended).toBe('closed-by-us');
});

describe('a message that is not JSON', () => {
  it.each(['hello', '[1]', 'null', '"{"', ' '])('ends the socket and is not delivered: %s', async (text) => {
    const { socket, client, seen } = await connected();
    client.send(text);
    expect(await socket.ended).toBe('dropped');
    expect(seen).toEqual([]);
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
    client.send('{"method":"A.good"}');
    expect((await unhandled)[0]).toBe(mine);
    for (const listener of others) process.on('unhandledRejection', listener as never);
    socket.close('closed-by-us');
    // If the message had ended the socket, the reason would differ.
    expect(await socket.ended).toBe('closed-by-us');
  });
});

describe('a heartbeat', () => {
  // Each client registers the secret parameters of its service.
  hideParameters(['jwt']);

  const INTERVAL = 2500;

  beforeEach(() => {
    useFakeClock({ toFake: ['setInterval', 'clearInterval'] });
  });

  /** Lets eight intervals pass, and expects the socket to be open after them. */
  async function expectOpen(socket: Client, onInterval: (count: number) => Promise<void>): Promise<void> {
    for (let count = 1; count <= 8; count++) {
      vi.advanceTimersByTime(INTERVAL);
      await onInterval(count);
    }
    socket.close('closed-by-us');
    expect(await socket.ended).toBe('closed-by-us');
  }

  it('keeps an idle socket open while the other side answers pings', async () => {
    const { socket, client } = await browser.connect();
    let pings = 0;
    client.on('ping', () => pings++);
    await expectOpen(socket, async (count) => {
      await expect.poll(() => pings).toBe(count);
      await settle();
    });
  });

  it('keeps a socket open that receives messages, even without pongs', async () => {
    await using silent = await PlayedBrowser.start({ autoPong: false });
    const { socket, client, seen } = await connected(silent);
    await expectOpen(socket, async (count) => {
      client.send('{"method":"A.a"}');
      await expect.poll(() => seen.length).toBe(count);
    });
  });

  it('ends a socket on which nothing moved for five intervals, within 15 s, and no earlier', async () => {
    const socket = await socketTo(accept);
    let end: string | undefined;
    void socket.ended.then((reason) => (end = reason));
    // The first interval has seen the upgrade.
    vi.advanceTimersByTime(5 * INTERVAL);
    await settle();
    expect(end).toBeUndefined();
    vi.advanceTimersByTime(INTERVAL);
    expect(await socket.ended).toBe('dropped');
  });

  it('keeps a socket open while parts of one large message arrive', async () => {
    let far!: NetSocket;
    const socket = await socketTo((raw, facts) => {
      far = raw;
      // The head of a frame with 20,000 bytes.
      acceptWith(Buffer.from([0x81, 126, 20_000 >> 8, 20_000 & 0xff, 0x7b]))(raw, facts);
    });
    await expectOpen(socket, async () => {
      far.write('x');
      await settle();
    });
  });

  it('keeps a socket open while the other side reads parts of one large message, and ends it when that stops', async () => {
    let far!: NetSocket;
    const socket = await socketTo((raw, facts) => {
      far = raw;
      accept(raw, facts);
      raw.pause();
    });
    let end: string | undefined;
    void socket.ended.then((reason) => (end = reason));
    // More than the buffers of the system.
    socket.send(Buffer.alloc(60_000_000));
    for (let beat = 1; beat <= 8; beat++) {
      for (let read = 0; read < 4_000_000; await nextTask())
        read += (far.read() as Buffer | null)?.length ?? 0;
      vi.advanceTimersByTime(INTERVAL);
    }
    await settle();
    expect(end).toBeUndefined();
    vi.advanceTimersByTime(6 * INTERVAL);
    expect(await socket.ended).toBe('dropped');
  });
});

describe('opening a socket', () => {
  const long = `No. ${'x'.repeat(100_000)}`;
  const hostile = JSON.stringify({ code: 'c', message: 'Install\r\n\u001b[31mchromium-bidi\u001b[0m' });
  const answer = (status: number, body: string) =>
    answerWith(`HTTP/1.1 ${status} No\r\ncontent-length: ${body.length}\r\n\r\n${body}`);

  it.each<[string, Upgrade, number, RegExp]>([
    ['the status', refuse(403), 403, /status 403/],
    ['the status of a redirect', refuse(302, { location: 'ws://127.0.0.1:1/' }), 302, /status 302/],
    [
      'the JSON message',
      answer(501, hostile),
      501,
      /^The WebSocket upgrade was refused with status 501: Install chromium-bidi\.$/,
    ],
    ['the beginning of the text', answer(501, long), 501, /status 501: No\. x{190,200}…$/],
    ['no secret', answer(501, `?token=${JWT}`), 501, /status 501: \?token=\[redacted\]$/],
    [
      'the beginning of an endless body',
      (socket) => void socket.write('HTTP/1.1 503 No\r\n\r\nDown'),
      503,
      /^The WebSocket upgrade was refused with status 503: Down\.$/,
    ],
  ])('fails with %s of a refused upgrade', async (_what, upgrade, status, message) => {
    const error = await rejection(socketTo(upgrade));
    expect(error).toBeInstanceOf(ConnectError);
    expect(error).toMatchObject({ status, message: expect.stringMatching(message) });
    expect(road.dialled).toBe(1);
  });

  it('fails with the cause if nothing listens', async () => {
    const error = await rejection(openClient(new URL(UNREACHABLE.replace('http', 'ws')), never));
    expect(error).toBeInstanceOf(ConnectError);
    expect(error.cause).toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('opens nothing after an abort', async () => {
    const reason = new Error('stop');
    await expect(openClient(new URL(browser.url), AbortSignal.abort(reason))).rejects.toBe(reason);
    expect(browser.dialled).toBe(0);
  });

  it('rejects on abort, and leaves nothing open', async () => {
    road.play(ignore);
    const caller = new AbortController();
    const opening = rejection(openClient(new URL(`ws://${road.host}/`), caller.signal));
    await expect.poll(() => road.dialled).toBe(1);
    caller.abort();
    expect(await opening).toBeInstanceOf(ConnectError);
  });

  it('ignores an abort after the socket is open', async () => {
    const caller = new AbortController();
    const socket = await openClient(new URL(browser.url), caller.signal);
    caller.abort();
    socket.send('still here');
    await expect.poll(() => browser.received).toEqual(['still here']);
    socket.close('closed-by-us');
    expect(await socket.ended).toBe('closed-by-us');
  });
});
