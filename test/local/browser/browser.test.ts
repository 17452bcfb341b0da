import { PassThrough } from 'node:stream';
import { expect, it, vi } from 'vitest';
import { type PipeClient, CdpPipe } from '../../../src/local/browser/cdp-pipe.js';
import { browserPaths } from '../../../src/local/browser/find-browser.js';
import type { CdpMessage } from '../../../src/wire/cdp-source.js';

/** A pipe to a Chromium that the test plays. */
function openPipe() {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const pipe = new CdpPipe(input, output);
  const say = (message: object) => void output.write(`${JSON.stringify(message)}\0`);
  /** The commands that have arrived since the last call. */
  const read = () => {
    const parts = String(input.read() ?? '').split('\0');
    return parts.slice(0, -1).map((part) => JSON.parse(part) as { id: number } & CdpMessage);
  };
  /** Connects a client with this browser session. */
  const connect = async (sessionId: string) => {
    const received: CdpMessage[] = [];
    const onEnd = () => void received.push({ method: 'the end' });
    const opening = pipe.connect({ onMessage: (message) => received.push(message), onEnd });
    say({ id: read()[0]!.id, result: { sessionId } });
    return { client: await opening, received };
  };
  return { pipe, input, output, say, read, connect };
}

it('ends a browser whose message is larger than any text can be, and this process goes on', async () => {
  const { input, output, say, connect } = openPipe();
  const { received } = await connect('BROWSER');
  say({ method: 'A.b', sessionId: 'BROWSER' });
  // A page can have Chromium report a large body.
  const part = Buffer.alloc(64 * 1024 * 1024, 'a');
  for (let parts = 0; parts < 9; parts++) output.write(part);
  output.write('\0');
  await expect.poll(() => input.destroyed).toBe(true);
  output.destroy();
  await expect.poll(() => received).toEqual([{ method: 'A.b' }, { method: 'the end' }]);
});

it.each<[what: string, command: CdpMessage, sessionId: string]>([
  ['of a page', { id: 1, method: 'A.b', params: { id: 2 }, sessionId: 'PAGE' }, 'PAGE'],
  ['without a session', { id: 1, method: 'A.b', params: { sessionId: 'OTHER' } }, 'BROWSER'],
  ['with an empty session', { id: 1, method: 'A.b', sessionId: '' }, 'BROWSER'],
  // NUL ends a message on the pipe: it must not hide another command.
  ['with a NUL', { id: 1, method: 'A.b', params: { text: '\0{"id":9}\0' } }, 'BROWSER'],
])(
  'sends a command %s with another id, and its response with the own one',
  async (_what, command, sessionId) => {
    const { connect, read, say } = openPipe();
    const { client, received } = await connect('BROWSER');
    client.send(command);
    const [sent, ...others] = read();
    expect(others).toEqual([]);
    expect(sent).toEqual({ ...command, id: expect.any(Number), sessionId });
    expect(sent!.id).not.toBe(1);
    say({ id: sent!.id, result: { x: 'ä' }, sessionId });
    await expect.poll(() => received).toHaveLength(1);
    const session = sessionId === 'BROWSER' ? {} : { sessionId };
    expect(received).toEqual([{ id: 1, result: { x: 'ä' }, ...session }]);
  },
);

/** Of more than 64 KiB. */
const TEXT = 'ä'.repeat(40_000);
const TEXT_LIKE_ENDS = `"},"id":1,"sessionId":"OTHER"}${TEXT}{"id":1,"result":{`;

/** Connects a client that passes large messages on, and one that reads them. Each has a command without a response. */
async function connectBoth() {
  const { pipe, connect, read, say, output } = openPipe();
  const { client: reader, received } = await connect('READER');
  const passedOn: string[] = [];
  const opening = pipe.connect({
    onMessage: (message) => passedOn.push(JSON.stringify(message)),
    onLarge: (json) => passedOn.push(String(json)),
    onEnd: () => {},
  });
  say({ id: read()[0]!.id, result: { sessionId: 'PASSER' } });
  const passer = await opening;
  for (const client of [reader, passer]) client.send({ id: 7, method: 'A.b' });
  const [toReader, toPasser] = read().map(({ id }) => id) as [number, number];
  const write = (json: string) => void output.write(`${json}\0`);
  return { write, received, passedOn, toReader, toPasser };
}

it('passes the content of a large message on as Chromium wrote it: nobody waits until it is parsed', async () => {
  const { write, passedOn, toPasser } = await connectBoth();
  // No parser would read this content.
  const content = `{"levels":${'['.repeat(1e6)}x${']'.repeat(1e6)},"text":${JSON.stringify(TEXT_LIKE_ENDS)}}`;
  write(`{"id":${toPasser},"result":${content},"sessionId":"PASSER"}`);
  write(`{"method":"A.b","params":${content},"sessionId":"PASSER"}`);
  write(`{"method":"A.b","params":${content},"sessionId":"NOBODY"}`);
  write(`{"method":"A.b","params":${content}}`);
  write('{"method":"A.end","params":{},"sessionId":"PASSER"}');
  await expect.poll(() => passedOn.at(-1)).toBe('{"method":"A.end","params":{}}');
  expect(passedOn.slice(0, -1)).toEqual([
    `{"id":7,"result":${content}}`,
    `{"method":"A.b","params":${content}}`,
  ]);
});

it('separates the sessions of large messages, as of others', async () => {
  const { write, passedOn, toPasser } = await connectBoth();
  const sessionId = 'PAGE';
  const targetInfo = { title: TEXT_LIKE_ENDS };
  const attached = { method: 'Target.attachedToTarget', params: { sessionId, targetInfo } };
  const event = { method: 'A.b', params: { text: TEXT_LIKE_ENDS } };
  const failure = { error: { code: -32_000, message: TEXT_LIKE_ENDS } };
  write(JSON.stringify({ ...attached, sessionId: 'PASSER' }));
  write(JSON.stringify({ ...event, sessionId }));
  write(JSON.stringify({ id: toPasser, ...failure, sessionId }));
  await expect.poll(() => passedOn).toHaveLength(3);
  expect(passedOn.map((text) => JSON.parse(text) as unknown)).toEqual([
    attached,
    { ...event, sessionId },
    { id: 7, ...failure, sessionId },
  ]);
});

it('parses a large message for a client that reads it, without what would take too long', async () => {
  const { write, received, toReader } = await connectBoth();
  const params = { text: TEXT_LIKE_ENDS };
  const tooMany = `{"lists":[${'[],'.repeat(500_000)}0]}`;
  write(JSON.stringify({ method: 'A.b', params, sessionId: 'READER' }));
  write(`{"method":"A.b","params":${tooMany},"sessionId":"READER"}`);
  write(`{"id":${toReader},"result":${tooMany},"sessionId":"READER"}`);
  await expect.poll(() => received).toHaveLength(2);
  const message = expect.stringContaining('500,000 values') as string;
  expect(received).toEqual([
    { method: 'A.b', params },
    { id: 7, error: { code: -32_000, message } },
  ]);
});

it.each([undefined, null, [], 5, {}, { id: '1', method: 'A.b' }, { method: 'A.b' }])(
  'answers %j, which is no command, with an error',
  async (command) => {
    const { connect, read } = openPipe();
    const { client, received } = await connect('BROWSER');
    client.send(command);
    expect(received).toMatchObject([{ error: { code: -32_600 } }]);
    expect(read()).toEqual([]);
  },
);

it('separates the clients: each receives the events and responses of its own sessions, until it closes', async () => {
  const { connect, read, say, output } = openPipe();
  const [one, two] = [await connect('ONE'), await connect('TWO')];
  const attach = (to: string, sessionId: string) =>
    say({ method: 'Target.attachedToTarget', params: { sessionId: to }, sessionId });
  const ask = ({ client }: { client: PipeClient }) => (client.send({ id: 7, method: 'A.b' }), read()[0]!.id);
  attach('PAGE', 'TWO');
  say({ method: 'A.happened', params: { sessionId: 'ONE' }, sessionId: 'PAGE' });
  say({ method: 'A.ofTheBrowser', params: {} });
  const [asked, late] = [ask(one), ask(one)];
  say({ id: asked, result: {}, sessionId: 'ONE' });
  await expect.poll(() => one.received).toEqual([{ id: 7, result: {} }]);
  expect(two.received).toEqual([
    { method: 'Target.attachedToTarget', params: { sessionId: 'PAGE' } },
    { method: 'A.happened', params: { sessionId: 'ONE' }, sessionId: 'PAGE' },
  ]);
  one.client.close();
  expect(read()).toMatchObject([{ method: 'Target.detachFromTarget', params: { sessionId: 'ONE' } }]);
  one.client.send({ id: 8, method: 'A.b' });
  expect(read()).toEqual([]);
  say({ id: late, result: {}, sessionId: 'ONE' });
  say({ method: 'Target.detachedFromTarget', params: { sessionId: 'PAGE' }, sessionId: 'TWO' });
  say({ method: 'A.happened', params: {}, sessionId: 'PAGE' });
  output.end();
  await expect.poll(() => two.received.at(-1)).toEqual({ method: 'the end' });
  expect(two.received).toHaveLength(4);
  expect(one.received).toHaveLength(1);
});

it('rejects a client when Chromium ends before it answers, and afterwards', async () => {
  const { pipe, output } = openPipe();
  const receiver = { onMessage: () => {}, onEnd: () => {} };
  const connecting = pipe.connect(receiver);
  output.destroy();
  await expect(connecting).rejects.toThrow('The browser has ended.');
  await expect(pipe.connect(receiver)).rejects.toThrow('The browser has ended.');
});

it('the usual paths of Chrome on macOS and Windows are searched', () => {
  vi.stubEnv('PROGRAMFILES', 'C:\\Program Files');
  expect(browserPaths('darwin')).toContain('/Applications/Google Chrome.app/Contents/MacOS/Google Chrome');
  expect(browserPaths('win32')).toContain('C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe');
});
