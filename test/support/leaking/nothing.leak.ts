import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';

it('closes everything that it opened, the socket a little late', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'pooled-browser-'));
  const server = createServer().listen(0);
  const socket = connect((server.address() as AddressInfo).port);
  await new Promise((resolve) => socket.once('connect', resolve));
  await rm(folder, { recursive: true });
  setTimeout(() => {
    socket.destroy();
    server.close();
  }, 200);
  vi.useFakeTimers();
  expect(socket.destroyed).toBe(false);
});
