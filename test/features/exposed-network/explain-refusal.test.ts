import { expect, it } from 'vitest';
import { explainRefusal } from '../../../src/features/exposed-network/explain-refusal.js';

const ELSEWHERE = { isElsewhere: true };

function explained(address: string, browser = ELSEWHERE, exposed?: string): string {
  const error = new Error(`page.goto: net::ERR_CONNECTION_REFUSED at ${address}`);
  explainRefusal(error, browser, exposed);
  return error.message;
}

it('says once, in the message and the stack of the same error, that localhost is that of the browser', () => {
  const error = new Error('net::ERR_CONNECTION_REFUSED at http://localhost:3000/a');
  explainRefusal(error, ELSEWHERE);
  const { message, stack } = error;
  expect(message).toMatch(/another machine.*set exposeNetwork: 'localhost:3000'\.$/);
  expect(stack).toContain(message);
  explainRefusal(error, ELSEWHERE);
  expect(error).toMatchObject({ message, stack });
});

it.each([
  ['a browser of this machine', 'http://localhost:3000/', { isElsewhere: false }, undefined],
  ['another address', 'http://shop.example/', ELSEWHERE, undefined],
  ['an exposed address: its server is down', 'http://localhost:3000/', ELSEWHERE, 'localhost'],
])('says nothing for %s', (_what, address, browser, exposed) => {
  expect(explained(address, browser, exposed)).not.toContain('exposeNetwork');
});

it('names what is missing if other addresses are exposed', () => {
  expect(explained('http://127.0.0.1:81/', ELSEWHERE, 'localhost')).toContain(
    "exposeNetwork: '127.0.0.1:81'",
  );
});
