import { expect, it } from 'vitest';
import { ExposedHosts } from '../../../src/features/exposed-network/exposed-hosts.js';
import { WebSocketCallers } from '../../../src/features/exposed-network/websocket-callers.js';

it('finds the WebSocket of a page in arguments of any depth', () => {
  const hosts = new ExposedHosts('localhost:1');
  const callers = new WebSocketCallers(hosts);
  const { events = {} } = callers.rules;
  const context = { id: 1, origin: 'https://page.example' };
  void events['Runtime.executionContextCreated']?.({ context }, 's');
  const url = hosts.read('ws://localhost:1/', 'websocket')!;
  const payload = `${'['.repeat(100_000)}"${url}"${']'.repeat(100_000)}`;
  void events['Runtime.bindingCalled']?.({ payload, executionContextId: 1 }, 's');
  expect(callers.takeOrigin(url)).toBe('https://page.example');
});
