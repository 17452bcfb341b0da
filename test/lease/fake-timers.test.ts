import { afterEach, expect, it, vi } from 'vitest';
import { PlayedLease } from '../support/played-lease.js';

afterEach(() => void vi.useRealTimers());

it('leases, connects and releases while the timers are fake', async () => {
  const played = await PlayedLease.start({
    connect: ({ socket }) =>
      new Promise((resolve) => {
        socket.onMessage = resolve;
        socket.send('{"id":1}');
      }),
  });
  played.browser.onText = (_text, client) => client.send('{"id":1}');
  played.service.script('acquire', { status: 204 }, { status: 503 }, { status: 200, json: played.session() });
  played.service.script('release', { status: 503 }, { status: 204 });
  vi.useFakeTimers();
  const { error, run } = await played.run(() => 'value', { release: 'reuse' });
  vi.useRealTimers();
  expect(error).toBeUndefined();
  expect(run).toMatchObject({ value: 'value', released: 'reused', acquireAttempts: 3 });
  await played[Symbol.asyncDispose]();
});

it('leases and releases while the microtasks are fake, as those of Jest are', async () => {
  const played = await PlayedLease.start();
  played.service.script('acquire', { status: 503 }, { status: 200, json: played.session() });
  vi.useFakeTimers({ toFake: ['queueMicrotask'] });
  const { run } = await played.run(() => 'value', { release: 'reuse', retry: { minTimeout: 1 } });
  vi.useRealTimers();
  expect(run).toMatchObject({ value: 'value', released: 'reused', acquireAttempts: 2 });
  await played[Symbol.asyncDispose]();
});

it('closes a pool whose microtasks are fake, as those of Jest are', async () => {
  const played = await PlayedLease.start();
  const { run } = await played.run(() => 'value', { release: 'reuse' });
  vi.useFakeTimers({ toFake: ['queueMicrotask'] });
  await played.pool.close();
  vi.useRealTimers();
  expect(run).toMatchObject({ released: 'reused' });
  await played[Symbol.asyncDispose]();
});
