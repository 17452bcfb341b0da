import { expect, it } from 'vitest';
import { Collected, findSecrets } from '../support/collected.js';
import { JWT, TOKEN } from '../support/fake-service.js';

// Other tests rely on this search.
it.each<[string, unknown]>([
  ['a message', new Error(`refused ${TOKEN}`)],
  ['a cause', new Error('clean', { cause: new Error('deeper', { cause: { url: `ws://x?jwt=${JWT}` } }) })],
  ['a stack', Object.assign(new Error('clean'), { stack: `at ${TOKEN}` })],
  [
    'a hidden property',
    Object.defineProperty(new Error('clean'), 'secret', { value: TOKEN, enumerable: false }),
  ],
  ['the depth', { a: { b: { c: { d: { e: { f: [new Map([['g', { h: JWT }]])] } } } } } }],
  ['a long text', { text: 'x'.repeat(50_000) + TOKEN }],
  ['a symbol', { [Symbol('s')]: { t: JWT } }],
  ['its JSON', { toJSON: () => ({ token: TOKEN }) }],
  ['a list of more than a hundred', [...Array.from({ length: 500 }, () => 'x'), TOKEN]],
  ['an aggregate', new AggregateError([new Error(TOKEN)], 'clean')],
])('the search for secrets finds one in %s', (_where, value) => {
  expect(findSecrets(value).length).toBeGreaterThan(0);
});

it('the search for secrets finds none in values without one', () => {
  expect(findSecrets(new Error('clean', { cause: { a: ['[redacted]'] } }))).toEqual([]);
  for (const value of [undefined, null, 0, 'text', Symbol('s')]) expect(findSecrets(value)).toEqual([]);
});

it('the search for secrets includes the warnings of the process', async () => {
  const collected = new Collected();
  collected.begin();
  process.emitWarning(`planted ${TOKEN}`);
  await new Promise(setImmediate);
  collected.end();
  expect(collected.warnings.flatMap(findSecrets).length).toBeGreaterThan(0);
});
