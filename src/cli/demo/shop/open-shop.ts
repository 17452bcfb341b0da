import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { findProduct } from './products.js';
import { frontPage, notFoundPage, productPage, receiptPage } from './pages.js';

/** A small web shop on 127.0.0.1. */
export interface Shop extends AsyncDisposable {
  readonly url: string;
}

/** Milliseconds: payments take a while, and so a job that comes third really waits. */
const PAYMENT = 900;
const MOST_CHARACTERS = 10_000;

export async function openShop(): Promise<Shop> {
  let orders = 0;
  const server = createServer((request, response) => {
    void answer(request, () => ++orders).then(
      (page) => send(response, page),
      () => response.destroy(),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/`,
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function answer(request: IncomingMessage, nextOrder: () => number): Promise<string | undefined> {
  const { pathname } = new URL(request.url ?? '/', 'http://127.0.0.1');
  if (pathname === '/') return frontPage();
  const product = findProduct(pathname.slice(1));
  if (!product) return undefined;
  if (request.method !== 'POST') return productPage(product);
  const form = new URLSearchParams(await readText(request));
  await sleep(PAYMENT);
  return receiptPage(product, nextOrder(), form.get('name') ?? '');
}

async function readText(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) {
    text += chunk as string;
    if (text.length > MOST_CHARACTERS) throw new Error('The form is too long.');
  }
  return text;
}

function send(response: ServerResponse, page: string | undefined): void {
  response.statusCode = page === undefined ? 404 : 200;
  response.setHeader('content-type', 'text/html; charset=utf-8');
  response.end(page ?? notFoundPage());
}
