import { connect, createServer, type AddressInfo } from 'node:net';
import { expect, it } from 'vitest';

it('passes, and leaves a server and a connection open', async () => {
  const server = createServer().listen(0);
  const { port } = server.address() as AddressInfo;
  const socket = connect(port);
  await new Promise((resolve) => socket.once('connect', resolve));
  expect(port).toBeGreaterThan(0);
});
