import { once } from 'node:events';
import { connect, type AddressInfo } from 'node:net';
import { createServer } from 'node:tls';
import { onTestFinished } from 'vitest';
import { BrowserPool, type BrowserPoolOptions } from '../../src/index.js';
import { FakeService, session, TOKEN } from './fake-service.js';
import { ForwardProxy, type ProxyOptions } from './forward-proxy.js';
import { PlayedBrowser } from './played-browser.js';
import { selfSigned } from './self-signed.js';

/** A user name and a password that need an encoding in a URL. */
export const CREDENTIALS = 'ada@test:canary-p@ss/word';

/**
 * A service and a browser at host names that only the proxy resolves, until the end of the test.
 *
 * @param isEncrypted Serves https and wss. Needs `openssl`.
 * @param isProxyEncrypted The proxy has an https address, too.
 */
export async function behindProxy(
  options: Omit<ProxyOptions, 'hosts' | 'certificate'> & {
    isEncrypted?: boolean;
    isProxyEncrypted?: boolean;
  } = {},
) {
  const { isEncrypted = false, isProxyEncrypted = false } = options;
  const service = await FakeService.start();
  const browser = await PlayedBrowser.start();
  const certificate = isEncrypted ? selfSigned() : undefined;
  const portOf = async (url: string) => {
    const { port } = new URL(url);
    return certificate ? serveTls(certificate, Number(port)) : Number(port);
  };
  const hosts = { 'service.test': await portOf(service.baseUrl), 'browser.test': await portOf(browser.url) };
  const ofProxy = isProxyEncrypted ? certificate : undefined;
  const proxy = await ForwardProxy.start({ hosts, ...options, certificate: ofProxy });
  const scheme = (name: string) => (isEncrypted ? `${name}s` : name);
  const webSocket = `${scheme('ws')}://browser.test/`;
  const json = session({ cdp_ws_url: webSocket, webdriver_ws_url: webSocket });
  service.script('acquire', { status: 200, json });
  onTestFinished(async () => {
    await proxy.die();
    await service.close();
    await browser[Symbol.asyncDispose]();
  });
  const baseUrl = `${scheme('http')}://service.test`;
  const poolWith = (settings: BrowserPoolOptions = {}) => {
    const pool = new BrowserPool('pool', { baseUrl, token: TOKEN, insecure: true, ...settings });
    onTestFinished(() => pool.close());
    return pool;
  };
  return { proxy, service, browser, baseUrl, ca: certificate?.cert, poolWith };
}

/** Returns a port that serves TLS in front of another port. */
async function serveTls(certificate: { key: string; cert: string }, port: number): Promise<number> {
  const server = createServer(certificate, (client) => {
    const to = connect(port, '127.0.0.1').on('error', () => client.destroy());
    client.on('error', () => to.destroy()).on('close', () => to.destroy());
    client.pipe(to).pipe(client);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}
