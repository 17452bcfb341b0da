import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** Opens connections that send nothing, and returns how many of them the server has left open. */
export async function openIdle(port: number, count: number): Promise<() => number> {
  const sockets: Socket[] = [];
  onTestFinished(() => sockets.forEach((socket) => socket.destroy()));
  while (sockets.length < count) {
    const opened = Array.from({ length: 50 }, () => connect(port, '127.0.0.1').on('error', () => {}));
    sockets.push(...opened);
    await Promise.all(opened.map((socket) => once(socket, 'connect')));
  }
  return () => sockets.filter(({ closed, readyState }) => !closed && readyState === 'open').length;
}
