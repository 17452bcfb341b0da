// Sends a request of its own, with `fetch`, after a request of the library. Used by ../own-fetch.real.test.ts.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { BrowserPool } from '../../../dist/index.js';

await new BrowserPool('pool').flush();
const server = createServer((request, response) => request.pipe(response)).listen(0, '127.0.0.1');
await once(server, 'listening');
const response = await fetch(`http://127.0.0.1:${server.address().port}`, {
  method: 'POST',
  headers: { 'content-length': '5' },
  body: 'hello',
});
console.log(await response.text());
server.close();
