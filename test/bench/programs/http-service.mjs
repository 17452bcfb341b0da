// A service that grants at once, in a process of its own: `{"baseUrl": …}` on stdout.
import { createServer } from 'node:http';

let grants = 0;
const server = createServer((request, response) => {
  request.resume().on('end', () => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(session(++grants)));
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  console.log(JSON.stringify({ baseUrl: `http://127.0.0.1:${server.address().port}` }));
});
process.once('disconnect', () => process.exit());

function session(number) {
  const jwt = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJzZXNzaW9uIiwiZXhwIjoyMDAwMDAwMDAwfQ.c2lnbmF0dXJl';
  return {
    session_id: `s${number}`,
    created_at: '2026-01-02T03:04:05Z',
    cdp_ws_url: `wss://browsers.example/s${number}/cdp?jwt=${jwt}`,
    webdriver_ws_url: `wss://browsers.example/s${number}/session?jwt=${jwt}`,
    headless: true,
    stealth: false,
    timeout_seconds: 60,
    pool: { id: 'p1', name: 'bench' },
    tags: { job: 'bench' },
  };
}
