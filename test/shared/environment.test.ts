import { afterEach, beforeEach, expect, it } from 'vitest';
import { SERVICE_NAMES, serviceNamed } from '../../src/pool/named-service.js';
import { environment, SECRET_VARIABLES } from '../../src/shared/environment.js';

const before = { ...process.env };
beforeEach(() => {
  for (const name of Object.keys(process.env)) delete process.env[name];
});
afterEach(() => {
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, before);
});

const SECRETS = {
  ...Object.fromEntries(SECRET_VARIABLES.map((name) => [name, 'a-secret'])),
  REDIS_URL: 'redis://:a-secret@127.0.0.1:6379',
  BROWSER_POOL_BASE_URL: 'wss://browserless.example.com/?token=a-secret',
};

it('gives the variables of the user to a program, without the secrets', () => {
  const own = {
    PATH: '/bin',
    MY_TOKEN: 'mine',
    HTTPS_PROXY: 'http://user:mine@proxy:1',
    NODE_OPTIONS: '--x',
  };
  Object.assign(process.env, own, SECRETS);
  expect(environment.forProgram()).toEqual(own);
  expect(environment.forProgram(['STEEL_API_KEY', 'REDIS_URL'])).toEqual({
    ...own,
    STEEL_API_KEY: 'a-secret',
    REDIS_URL: SECRETS.REDIS_URL,
  });
});

it('passes the addresses that contain no secret on', () => {
  const own = { REDIS_URL: 'redis://127.0.0.1:6379', BROWSER_POOL_BASE_URL: 'https://pool.example.com/v1' };
  Object.assign(process.env, own);
  expect(environment.forProgram()).toEqual(own);
});

it('gives a browser and a helper process what they need, without secrets and loaders', () => {
  const needed = {
    PATH: '/bin',
    TMPDIR: '/t',
    LC_ALL: 'C',
    DISPLAY: ':1',
    NODE_EXTRA_CA_CERTS: '/ca.pem',
    no_proxy: 'a',
  };
  const proxies = { https_proxy: 'http://user:a-secret@proxy:3128', HTTP_PROXY: 'user:a-secret@proxy:3128' };
  Object.assign(process.env, needed, proxies, SECRETS, {
    AWS_SECRET_ACCESS_KEY: 'a-secret',
    NODE_OPTIONS: '--import x --use-system-ca',
  });
  const expected = { ...needed, https_proxy: 'http://proxy:3128', HTTP_PROXY: 'proxy:3128' };
  expect(environment.forHelperProgram()).toEqual(expected);
  expect(environment.forHelper()).toMatchObject({ args: ['--use-system-ca'], env: expected });
});

it.each(SERVICE_NAMES)('lists the variables with the token of the service %s', (name) => {
  const { service } = serviceNamed(name, 'https://pool.example.com');
  expect(SECRET_VARIABLES).toEqual(expect.arrayContaining([...(service.usualToken?.variables ?? [])]));
});
