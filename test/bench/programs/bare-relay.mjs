// A WebSocket server that passes each message of its clients to the URL of its first argument, and back, and reads none of them. Prints its
// own URL.
import { once } from 'node:events';
import { WebSocket, WebSocketServer } from 'ws';

const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false });
server.on('connection', async (client) => {
  const browser = new WebSocket(process.argv[2], { perMessageDeflate: false });
  client.pause();
  await once(browser, 'open');
  client.on('message', (data, binary) => browser.send(data, { binary }));
  browser.on('message', (data, binary) => client.send(data, { binary }));
  client.on('close', () => browser.close());
  client.resume();
});
await once(server, 'listening');
console.log(`ws://127.0.0.1:${server.address().port}`);
