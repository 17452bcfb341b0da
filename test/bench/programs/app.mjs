/**
 * An app on this machine: a page with 200 requests at /, and plain pages elsewhere. Answers after DELAY ms. Prints its port.
 * `/bytes?mb=60` sends this many megabytes, as an attachment with `&attachment`; a POST is counted.
 */
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { pipeline, Readable } from 'node:stream';

const REQUESTS = 200;
const TYPES = { js: 'text/javascript', png: 'image/png', json: 'application/json', css: 'text/css' };
/** As in a development server: many small modules, some images. */
const SIZES = { js: 4000, png: 20_000, json: 1000, css: 3000 };
const bodies = {
  js: `/*${'x'.repeat(SIZES.js)}*/`,
  css: `/*${'x'.repeat(SIZES.css)}*/`,
  json: JSON.stringify('x'.repeat(SIZES.json)),
  png: randomBytes(SIZES.png),
};
const tags = Array.from({ length: REQUESTS }, (_, index) => {
  if (index % 10 === 9) return `<link rel="stylesheet" href="/${index}.css">`;
  if (index % 10 > 6) return `<script>fetch('/${index}.json').then((r) => r.json())</script>`;
  return index % 10 > 3 ? `<img src="/${index}.png">` : `<script async src="/${index}.js"></script>`;
});
const page = `<!doctype html><title>app</title>${tags.join('\n')}`;
const plain =
  '<!doctype html><title>a page</title><script src="/a.js"></script><img src="/b.png"><link rel="stylesheet" href="/c.css">';

/** Time in ms after which every request is answered. */
const DELAY = Number(process.env['DELAY'] ?? 0);
const MEGABYTE = randomBytes(1024 * 1024);

function sendBytes({ searchParams }, response) {
  const count = Number(searchParams.get('mb'));
  const disposition = searchParams.has('attachment') && { 'content-disposition': 'attachment' };
  response.writeHead(200, { 'content-length': count * MEGABYTE.length, ...disposition });
  pipeline(Readable.from(Array.from({ length: count }, () => MEGABYTE)), response, () => {});
}

const server = createServer(async (request, response) => {
  const { url, method } = request;
  if (url.startsWith('/bytes')) return sendBytes(new URL(url, 'http://app'), response);
  if (method === 'POST') {
    let size = 0;
    for await (const chunk of request) size += chunk.length;
    return response.end(String(size));
  }
  if (DELAY > 0) await new Promise((resolve) => setTimeout(resolve, DELAY));
  const type = url.split('.')[1];
  const body = url === '/' ? page : (bodies[type] ?? plain);
  response
    .writeHead(200, { 'content-type': TYPES[type] ?? 'text/html', 'cache-control': 'no-store' })
    .end(body);
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
