// A pool without browsers that serves acquire requests in their order. Prints `{"baseUrl": …}`. Its first argument is
// the number of browsers, or `unlimited`. Messages: 'down' and 'up' for an outage, 'figures' for its counts.
import { createServer } from 'node:http';
import { WebSocketServer } from 'ws';

const isUnlimited = process.argv[2] === 'unlimited';
const idle = Array.from({ length: isUnlimited ? 1 : Number(process.argv[2]) }, (_, index) => `s${index}`);
const waiting = [];
const grantedAt = new Map();
const figures = { requests: 0, whileDown: 0, order: [], busy: 0, firstAfter: 0, lastRelease: 0 };
let isDown = false;
let upSince = 0;

const server = createServer(async (request, response) => {
  let text = '';
  for await (const chunk of request) text += chunk;
  const body = text === '' ? {} : JSON.parse(text);
  figures.requests++;
  if (isDown) {
    figures.whileDown++;
    return response.writeHead(503).end();
  }
  if (request.url.endsWith('/acquire')) return acquire(body, response);
  if (request.url.endsWith('/release')) return release(body, response);
  response.writeHead(200, { 'content-type': 'application/json' }).end('[]');
});
new WebSocketServer({ server }).on('connection', () => {});
server.keepAliveTimeout = 60_000;
server.maxConnections = 0;
server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => {
  console.log(JSON.stringify({ baseUrl: `http://127.0.0.1:${server.address().port}` }));
});
process.on('message', (question) => {
  if (question === 'down') isDown = true;
  if (question === 'up') [isDown, upSince] = [false, performance.now()];
  process.send(question === 'figures' ? figures : 'done');
});
process.once('disconnect', () => process.exit());

function acquire({ acquire_timeout_seconds: wait, tags }, response) {
  const waiter = { number: Number(tags?.call), response };
  const leave = () => {
    clearTimeout(waiter.timer);
    const place = waiting.indexOf(waiter);
    if (place !== -1) waiting.splice(place, 1);
  };
  waiter.timer = setTimeout(() => {
    leave();
    response.writeHead(204).end();
  }, wait * 1000);
  response.once('close', leave);
  waiting.push(waiter);
  serve();
}

function release({ session_id: id }, response) {
  figures.busy += performance.now() - grantedAt.get(id);
  figures.lastRelease = performance.now();
  grantedAt.delete(id);
  idle.push(id);
  response.writeHead(204).end();
  serve();
}

function serve() {
  while (idle.length > 0 && waiting.length > 0) {
    const { number, response, timer } = waiting.shift();
    clearTimeout(timer);
    const id = isUnlimited ? `s${figures.requests}` : idle.shift();
    if (!isUnlimited) grantedAt.set(id, performance.now());
    figures.order.push(number);
    if (upSince > 0) figures.firstAfter ||= performance.now() - upSince;
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(session(id)));
  }
}

function session(id) {
  const url = `ws://127.0.0.1:${server.address().port}/${id}?jwt=bench-jwt-0123456789`;
  return {
    session_id: id,
    created_at: '2026-01-02T03:04:05Z',
    cdp_ws_url: url,
    webdriver_ws_url: url,
    headless: true,
    stealth: false,
    timeout_seconds: 60,
  };
}
