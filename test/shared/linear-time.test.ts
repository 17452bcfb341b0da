import { beforeAll, expect, it } from 'vitest';
import { oneLine, formatNote, formatTable } from '../../src/cli/terminal.js';
import { ConsoleLog } from '../../src/features/artifacts/console-log.js';
import { recordReason } from '../../src/jobs/outcome.js';
import { StoredOutcomes } from '../../src/jobs/stored-outcomes.js';
import { serviceError } from '../../src/net/response.js';
import { sealSession } from '../../src/pool/session.js';
import { withoutSecrets } from '../../src/shared/errors.js';
import { parseJson } from '../../src/shared/json.js';
import {
  excerpt,
  hideOwnSecret,
  hideParameters,
  hideSecret,
  hideValuesIn,
  printable,
  printableLines,
  redact,
  shortenUrls,
} from '../../src/shared/redact.js';
import { PoolServiceError } from '../../src/shared/service-errors.js';

/** Characters of the shorter text, and of the text that is compared with a parser. */
const SIZE = 10_000;
const MEGABYTE = 1_000_000;
/** How many times as long the longer text is. */
const LONGER = 8;
/**
 * How many times the time it may take: time that grows with the square would be 64 times as much. Memory of more than 128 KB at once
 * costs twice as much for each byte.
 */
const LIMIT = 24;
/** Processor time in ms that the garbage collector and the compiler decide. */
const TOO_SHORT = 0.5;

const repeated = (part: string) => (size: number) =>
  part.repeat(Math.ceil(size / part.length)).slice(0, size);

/** What a page, a peer or a service can send to make patterns read the same characters again and again. */
const TEXTS: Readonly<Record<string, (size: number) => string>> = {
  'beginnings of a JWT': repeated('eyJ'),
  'parts of a JWT': repeated('eyJhbGciOiJ.'),
  'beginnings of a JWT in one word': (size) => `x${repeated('eyJ')(size)}`,
  'beginnings of a URL': repeated('a://'),
  'URLs with an empty query': repeated('a://?'),
  'URLs with a user': repeated('://a@'),
  'a URL without an end': (size) => `https://${repeated('a')(size)}`,
  'quotation marks': repeated('"'),
  'escaped quotation marks': repeated('\\"'),
  'parameters of a URL': repeated('?a='),
  'escaped characters': repeated('\\u0061%62&#x63;'),
  backslashes: repeated('\\'),
  'references of HTML without an end': repeated('&#x000'),
  dots: repeated('.'),
  'escape characters': repeated('\u001B'),
  'beginnings of a color': repeated('\u001B[1'),
  'marks of direction': repeated('\u202E'),
  'halves of surrogate pairs': repeated('\uD800'),
  base64: repeated('QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo'),
  'spaces after a scheme': (size) => `Bearer${repeated(' ')(size)}`,
  'schemes without a token': repeated('Bearer '),
  'names of secrets and spaces': repeated(`"token"${' '.repeat(40)}`),
  'open values of secrets': repeated('"token":"'),
  'secrets of a URL': repeated('token=a&'),
  lines: repeated('\n'),
  'a frame of a stack': (size) => `    at ${repeated('a:1:1')(size)}`,
  'beginnings of secrets': repeated('service-secret-'),
  'secrets in one another': repeated('a'),
};

hideParameters(['jwt', 'access_token']);

/** Secrets that begin alike, or that a text contains at each position. */
beforeAll(() => {
  hideOwnSecret('own-token-of-the-user');
  for (let count = 0; count < 400; count++) hideSecret(`service-secret-${count}-and-more`);
  for (let count = 0; count < 40; count++) hideSecret(`${'a'.repeat(4000)}${count}`);
});

/** Everything that reads text from outside, as users reach it. */
const PATHS: Readonly<Record<string, (text: string) => unknown>> = {
  redact,
  shortenUrls: (text) => shortenUrls(text, text.length),
  printable,
  printableLines,
  excerpt: (text) => excerpt(text, 200),
  hideValuesIn,
  'an error body': (body) => serviceError({ status: 500, headers: {}, body }, {}),
  'the message of an error body': (message) =>
    serviceError({ status: 500, headers: {}, body: JSON.stringify({ message, details: [{ message }] }) }, {}),
  'headers of a response': (text) =>
    serviceError(
      { status: 302, headers: { location: text, 'retry-after': text, 'x-request-id': text }, body: '' },
      {},
    ),
  'an error of the library': (text) => new PoolServiceError({ status: 500, code: text, message: text }),
  'an error of another library': (text) => withoutSecrets(new Error(text, { cause: text })),
  'a session': (text) => sealSession({ id: 'id', session: { id: 'id', note: text } }),
  'the reason of a failed task': (text) => recordReason(new Error(text)),
  'lines of a console': (text) => {
    const log = new ConsoleLog();
    for (let line = 0; line < 2; line++) log.add({ type: 'console', level: 'log', text, url: text } as never);
    return log.text;
  },
  'a note of a command': formatNote,
  'an error of a command': oneLine,
  'a table of a command': (text) => formatTable([[text, text]]),
  'the key of a JSON object': (text) => parseJson(JSON.stringify({ [text]: { __proto__: 1, text } })),
};

it.each(Object.keys(PATHS))(
  'takes no more than a multiple of the time for a multiple of the text: %s',
  { timeout: 60_000 },
  (path) => {
    for (const [what, textOf] of Object.entries(TEXTS)) {
      const [short, long] = [textOf(SIZE), textOf(LONGER * SIZE)];
      expectLinear(
        what,
        () => PATHS[path]!(short),
        () => PATHS[path]!(long),
      );
    }
  },
);

it('takes no more than a multiple of the time for a multiple of the lines of a checkpoint, also if all have one index', () => {
  const add = (lines: number) => {
    const stored = new StoredOutcomes({ retriesRejected: true });
    for (let start = 0; start < lines; start++)
      stored.add({ status: 'rejected', index: 0, input: start } as never, start);
  };
  expectLinear(
    'lines',
    () => add(SIZE),
    () => add(LONGER * SIZE),
  );
});

function expectLinear(what: string, short: () => unknown, long: () => unknown): void {
  let [ofLong, ofShort, limit] = [timeOf(long), Infinity, LIMIT * TOO_SHORT];
  for (let run = 0; run < 20 && ofLong >= limit; run++) {
    ofShort = Math.min(ofShort, timeOf(short));
    ofLong = Math.min(ofLong, timeOf(long));
    limit = LIMIT * Math.max(ofShort, TOO_SHORT);
  }
  expect(ofLong, `${what}: ${ofShort} ms, ${LONGER} times as long: ${ofLong} ms`).toBeLessThan(limit);
}

it('cuts a text for a message before it redacts: a megabyte costs less than parsing it', () => {
  const prose = repeated('The page at https://shop.test/?item=7 says "out of stock", and ')(MEGABYTE);
  const bytes = Buffer.from(JSON.stringify({ error: prose.split(' ') }));
  const reading = fastest(() => JSON.parse(new TextDecoder().decode(bytes)));
  for (const [what, textOf] of Object.entries(TEXTS)) {
    const text = textOf(MEGABYTE);
    expect(
      fastest(() => excerpt(text, 200)),
      what,
    ).toBeLessThan(reading);
  }
});

function fastest(work: () => unknown): number {
  return Math.min(...Array.from({ length: 3 }, () => timeOf(work)));
}

/** Processor time of this process in ms: other programs do not count. */
function timeOf(work: () => unknown): number {
  const start = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}
