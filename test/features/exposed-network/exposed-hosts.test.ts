import { describe, expect, it } from 'vitest';
import { explainRefusal } from '../../../src/features/exposed-network/explain-refusal.js';
import { ExposedHosts, faultInHosts } from '../../../src/features/exposed-network/exposed-hosts.js';

/** The rules, the URLs that they match, and others. */
const RULES: [rules: string, exposed: string[], others: string[]][] = [
  [
    'localhost:3000',
    [
      'http://localhost:3000/',
      'https://localhost:3000/a?b',
      'ws://localhost:3000/hmr',
      'http://a:b@localhost:3000/',
    ],
    [
      'http://localhost/',
      'http://localhost:30001/',
      'http://localhost:3000.example/',
      'http://a.localhost:3000/',
      'http://other.example/?http://localhost:3000/',
      'http://localhost:3000@other.example/',
    ],
  ],
  ['shop.test', ['http://shop.test/', 'http://shop.test:81/', 'wss://shop.test/'], ['http://a.shop.test/']],
  ['shop.test:80', ['http://shop.test/', 'https://shop.test:80/', 'ws://shop.test/'], ['https://shop.test/']],
  [
    'shop.test:443',
    ['https://shop.test/', 'wss://shop.test/'],
    ['http://shop.test/', 'https://shop.test:80/'],
  ],
  [
    '*.test.internal',
    ['http://a.test.internal/', 'http://a.b.test.internal:8080/'],
    ['http://test.internal/', 'http://other.example/a.test.internal/'],
  ],
  ['.internal, x.*.com', ['http://a.internal/', 'http://x.y.com/'], ['http://internal/', 'http://y.com/']],
  [
    '<loopback>',
    [
      'http://localhost/',
      'http://a.localhost:1/',
      'https://127.0.0.1/',
      'http://127.9.9.9:9/',
      'http://[::1]:1/',
    ],
    ['http://127.example/', 'http://127.0.0.1.example/', 'http://localhost.example/', 'http://[::2]/'],
  ],
  ['<loopback>:3000', ['http://[::1]:3000/', 'http://127.0.0.1:3000/'], ['http://127.0.0.1/']],
  ['*', ['http://a/', 'https://10.0.0.1:8/', 'ws://[fe80::1]/'], ['data:text/html,', 'file:///http://a/']],
  ['*:8080', ['http://10.0.0.1:8080/', 'http://a:8080/'], ['http://a/']],
  ['10.0.0.1,[0:0::1]:99', ['http://10.0.0.1/', 'http://[::1]:99/'], ['http://10.0.0.10/', 'http://[::1]/']],
  // As in Playwright, a star in a name matches no address.
  ['*1', ['http://host1/'], ['http://10.0.0.1/']],
  ['Bücher.example', ['http://xn--bcher-kva.example/'], ['http://b.example/']],
];

describe.each(RULES)('%s', (rules, exposed, others) => {
  const { pattern, cdpPatterns } = new ExposedHosts(rules);
  /** As Chromium matches them. */
  const asRegExp = (text: string) =>
    new RegExp(`^${text.replaceAll(/[.+^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*')}$`);
  const isPaused = (url: string) => cdpPatterns.some((each) => asRegExp(each).test(url));

  it.each(exposed)('exposes %s', (url) => {
    expect(faultInHosts(rules)).toBeUndefined();
    expect(pattern.test(url)).toBe(true);
    if (url.startsWith('http')) expect(isPaused(url)).toBe(true);
  });

  it.each(others)('does not expose %s', (url) => expect(pattern.test(url)).toBe(false));
});

it('pauses no request to another host, except for a path that looks like a host', () => {
  expect(new ExposedHosts('localhost:3000,shop.test:443').cdpPatterns).toEqual([
    'http://localhost:3000/*',
    'http://*@localhost:3000/*',
    'https://localhost:3000/*',
    'https://*@localhost:3000/*',
    'http://shop.test:443/*',
    'http://*@shop.test:443/*',
    'https://shop.test/*',
    'https://*@shop.test/*',
  ]);
});

it.each([
  ['', "has the rule '', which is no host"],
  ['localhost,', "has the rule '', which is no host"],
  ['http://localhost:3000', "has the rule 'http://localhost:3000', which is no host"],
  ['a@localhost', 'which is no host'],
  ['localhost/path', 'which is no host'],
  ['::1', 'which is no host'],
  ['[::g]', 'which is no host'],
  ['3000', 'which is no host'],
  ['<local>', 'which is no host'],
  ['a b', 'which is no host'],
  ['localhost:0', 'whose port must be 1 to 65535'],
  ['localhost:65536', 'whose port must be 1 to 65535'],
  [3000, "must be a list of hosts, such as 'localhost:3000', not 3000"],
])('refuses %j', (rules, fault) => expect(faultInHosts(rules)).toContain(fault));

it.each([
  ['ws://10.0.0.9:80\\path?x=@localhost:3000/', 'websocket'],
  ['ws://10.0.0.9?@localhost:3000/', 'websocket'],
  ['ws://10.0.0.9#@localhost:3000/', 'websocket'],
  ['http://10.0.0.9?@localhost:3000/', 'request'],
  ['http://10.0.0.9\\@localhost:3000/', 'request'],
  ['ws://localhost:3000/', 'request'],
  ['http://localhost:3000/', 'websocket'],
  ['file://localhost:3000/', 'request'],
  ['nothing', 'request'],
] as const)('does not expose %s as a %s: the parsed URL is tested', (url, kind) => {
  expect(new ExposedHosts('localhost:3000').read(url, kind)).toBeUndefined();
});

it.each([
  ['ws://LOCALHOST:3000', 'ws://localhost:3000/'],
  ['ws:\\\\localhost:3000\\a', 'ws://localhost:3000/a'],
])('opens %s as it was parsed', (url, href) => {
  expect(new ExposedHosts('localhost:3000').read(url, 'websocket')).toBe(href);
});

describe('the error of a refused connection', () => {
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
});
