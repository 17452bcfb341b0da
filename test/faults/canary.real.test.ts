import { describe, expect, it } from 'vitest';
import { Collected, findSecrets } from '../support/collected.js';
import { JWT, TOKEN } from '../support/fake-service.js';

/** The other tests of this folder rely on this search. */
describe('the search for secrets', () => {
  const hidden = Object.defineProperty(new Error('clean'), 'secret', { value: TOKEN, enumerable: false });
  const deep = { a: { b: { c: { d: { e: { f: [new Map([['g', { h: JWT }]])] } } } } } };
  const long = { text: 'x'.repeat(50_000) + TOKEN };
  const symbol = { [Symbol('s')]: { t: JWT } };
  const json = { toJSON: () => ({ token: TOKEN }) };

  it.each<[string, unknown]>([
    ['a message', new Error(`refused ${TOKEN}`)],
    ['a cause', new Error('clean', { cause: new Error('deeper', { cause: { url: `ws://x?jwt=${JWT}` } }) })],
    ['a stack', Object.assign(new Error('clean'), { stack: `at ${TOKEN}` })],
    ['a hidden property', hidden],
    ['the depth', deep],
    ['a long text', long],
    ['a symbol', symbol],
    ['its JSON', json],
    ['a list of more than a hundred', [...Array.from({ length: 500 }, () => 'x'), TOKEN]],
    ['an aggregate', new AggregateError([new Error(TOKEN)], 'clean')],
  ])('finds a secret in %s', (_where, value) => {
    expect(findSecrets(value).length).toBeGreaterThan(0);
  });

  it('finds no secret in values without one', () => {
    expect(findSecrets(new Error('clean', { cause: { a: ['[redacted]'] } }))).toEqual([]);
    for (const value of [undefined, null, 0, 'text', Symbol('s')]) expect(findSecrets(value)).toEqual([]);
  });

  it('collects warnings of the process', async () => {
    const collected = new Collected();
    collected.begin();
    process.emitWarning(`planted ${TOKEN}`);
    await new Promise(setImmediate);
    collected.end();
    expect(collected.warnings.flatMap(findSecrets).length).toBeGreaterThan(0);
  });
});
