import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { BrowserPool } from '../../src/index.js';
import { processesOf } from '../support/processes.js';
import { startLocalPool, type LocalPool } from '../../src/local.js';

const program = fileURLToPath(new URL('programs/holding.mjs', import.meta.url));

interface Passing {
  method: string;
  path: string;
  token: string;
  /** Lets the local pool process the request, and returns its response. */
  forward: () => Promise<Response>;
  response: ServerResponse;
}

describe('a release that is under way when the process ends', () => {
  let local: LocalPool;
  /** Proxy between the program and the local pool, which decides what happens to each request. */
  let proxy: Server;
  let play: (request: Passing) => Promise<void>;
  let requests: { method: string; path: string; token: string }[];
  const children: ChildProcess[] = [];

  beforeEach(async () => {
    local = await startLocalPool({ pools: [{ name: 'test', size: 1 }] });
    requests = [];
    play = pass;
    proxy = createServer((request, response) => void receive(request, response));
    await once(proxy.listen(0, '127.0.0.1'), 'listening');
  });

  afterEach(async () => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
    await expect.poll(helpers).toEqual([]);
    proxy.closeAllConnections();
    await once(proxy.close(), 'close');
    await local.close();
  });

  async function receive(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const { method = '', url: path = '', headers } = incoming;
    const token = String(headers.authorization).replace('Bearer ', '');
    requests.push({ method, path, token });
    const body = chunks.length > 0 ? Buffer.concat(chunks) : null;
    const forward = () =>
      fetch(local.baseUrl + path, {
        method,
        body,
        headers: { authorization: `Bearer ${local.token}`, 'content-type': 'application/json' },
      });
    await play({ method, path, token, forward, response });
  }

  async function pass({ forward, response }: Passing): Promise<void> {
    const answer = await forward();
    const body = Buffer.from(await answer.arrayBuffer());
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(body);
  }

  const releases = () => requests.filter(({ path }) => path.endsWith('/release'));
  const questions = () =>
    requests.filter(({ method, path }) => method === 'GET' && /browsers\/[^/]+$/.test(path));

  function start(ending: string, options: { tokens?: boolean; nodeOptions?: string } = {}) {
    const { port } = proxy.address() as AddressInfo;
    const env = {
      ...process.env,
      BROWSER_POOL_BASE_URL: `http://127.0.0.1:${port}`,
      BROWSER_POOL_ACCESS_TOKEN: 'the-token',
      ...(options.nodeOptions && { NODE_OPTIONS: options.nodeOptions }),
    };
    const args = [program, ending, ...(options.tokens ? ['tokens'] : [])];
    const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
    children.push(child);
    let output = '';
    child.stdout.on('data', (text) => (output += String(text)));
    const says = async (text: string) => {
      await expect.poll(() => output, { timeout: 240_000 }).toContain(text);
    };
    return { child, says, ended: once(child, 'exit') };
  }

  /** The guard process of a program. */
  function guardOf({ pid }: ChildProcess): { args: string; isOver: () => boolean } {
    const pids = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
    const argsOf = (child: string) => readFileSync(`/proc/${child}/cmdline`, 'utf8').replaceAll('\0', ' ');
    const guard = pids.find((child) => argsOf(child).includes('release-process'))!;
    return { args: argsOf(guard), isOver: () => isOver(guard) };
  }

  /** Leases the browser for another client as soon as it is free. */
  async function leaseForOther(): Promise<void> {
    await using other = new BrowserPool('test', { baseUrl: local.baseUrl, token: local.token });
    expect(await other.acquire({ acquire_timeout_seconds: 60 })).not.toBeNull();
  }

  it('is awaited after a signal, and not repeated', async () => {
    play = async (request) => {
      if (!request.path.endsWith('/release')) return pass(request);
      const answer = await request.forward();
      await leaseForOther();
      child.kill('SIGTERM');
      // The signal arrives long before the response.
      setTimeout(() => request.response.writeHead(answer.status).end(), 500);
    };
    const { child, ended } = start('release');
    expect(await ended).toEqual([null, 'SIGTERM']);
    expect(releases()).toHaveLength(1);
    expect(local.stats().leased).toBe(1);
  });

  it.each(['SIGTERM', 'SIGKILL'] as const)(
    'does not end the lease of another client after %s, if its response never arrives',
    async (signal) => {
      play = async (request) => {
        if (!request.path.endsWith('/release')) return pass(request);
        await request.forward();
        await leaseForOther();
        guard = guardOf(child);
        child.kill(signal);
      };
      let guard: ReturnType<typeof guardOf> | undefined;
      const { child, ended } = start('guarded');
      expect(await ended).toEqual([null, signal]);
      await expect.poll(() => questions().length).toBeGreaterThan(0);
      await expect.poll(() => guard!.isOver()).toBe(true);
      expect(releases()).toHaveLength(1);
      expect(local.stats().leased).toBe(1);
    },
  );

  it('is repeated after SIGKILL if it never reached the service', async () => {
    play = async (request) => {
      if (!request.path.endsWith('/release') || releases().length > 1) return pass(request);
      child.kill('SIGKILL');
    };
    const { child, ended } = start('guarded');
    expect(await ended).toEqual([null, 'SIGKILL']);
    await expect.poll(() => local.stats().leased).toBe(0);
    // A busy pool may receive each request twice.
    expect(questions()).not.toHaveLength(0);
    expect(releases().length).toBeGreaterThan(1);
    // No release is repeated without a check of the owner.
    expect(releases().length).toBeLessThanOrEqual(questions().length + 1);
  });

  it('leaves the next lease of the same session guarded if it ends after that lease has started', async () => {
    let hasNextLease = () => {};
    const nextLease = new Promise<void>((resolve) => (hasNextLease = resolve));
    play = async (request) => {
      if (request.path.endsWith('/acquire')) {
        await pass(request);
        if (requests.filter(({ path }) => path.endsWith('/acquire')).length > 1) hasNextLease();
      } else if (request.path.endsWith('/release') && releases().length === 1) {
        const answer = await request.forward();
        await nextLease;
        request.response.writeHead(answer.status).end();
      } else await pass(request);
    };
    const { child, says, ended } = start('guarded-again');
    await says('leased again');
    expect(local.stats().leased).toBe(1);
    child.kill('SIGKILL');
    expect(await ended).toEqual([null, 'SIGKILL']);
    await expect.poll(() => local.stats().leased).toBe(0);
  });

  it('is completed by the helper process after the exit if it takes longer than the exit may', async () => {
    let hasExited = () => {};
    const exited = new Promise<void>((resolve) => (hasExited = resolve));
    play = async (request) => {
      if (!request.path.endsWith('/release')) return pass(request);
      // The helper receives no response to its first request.
      const isFirst = releases().length === 1;
      await exited;
      if (!isFirst) await pass(request);
    };
    const { ended } = start('exit');
    expect(await ended).toEqual([7, null]);
    expect(local.stats().leased).toBe(1);
    hasExited();
    await expect.poll(() => local.stats().leased).toBe(0);
  });

  it('is repeated by the guard, with pauses, while the service answers with an error', async () => {
    const times: number[] = [];
    play = async (request) => {
      if (!request.path.endsWith('/release')) return pass(request);
      times.push(performance.now());
      if (times.length > 3) return pass(request);
      request.response.writeHead(503).end();
    };
    const { child, says, ended } = start('guarded-hold');
    await says('leased');
    child.kill('SIGKILL');
    expect(await ended).toEqual([null, 'SIGKILL']);
    await expect.poll(() => local.stats().leased).toBe(0);
    const pauses = times.slice(1).map((time, index) => time - times[index]!);
    // At least 200, 400 and 800 ms. Timers may end a millisecond early.
    expect(pauses.map((pause, index) => pause >= 200 * 2 ** index - 5)).toEqual([true, true, true]);
  });

  it('is sent by the guard with a token that the token function returned later', async () => {
    play = async (request) => {
      const isExpired = isRotated && request.token !== 'second-token';
      if (isExpired) request.response.writeHead(401).end();
      else await pass(request);
    };
    let isRotated = false;
    const { child, says, ended } = start('guarded-hold', { tokens: true });
    await says('rotated');
    isRotated = true;
    child.kill('SIGKILL');
    expect(await ended).toEqual([null, 'SIGKILL']);
    await expect.poll(() => local.stats().leased).toBe(0);
    // A busy pool may receive it twice.
    expect(releases()[0]).toMatchObject({ token: 'second-token' });
  });

  it('is sent by a guard with the certificates of this process, and without its loaders', async () => {
    const { child, says } = start('guarded-hold', {
      nodeOptions: '--use-openssl-ca --import=data:text/javascript,0',
    });
    await says('leased');
    const { args } = guardOf(child);
    expect(args).toContain('--use-openssl-ca');
    expect(args).not.toContain('--import');
    child.kill('SIGKILL');
    await expect.poll(() => local.stats().leased).toBe(0);
  });
});

/** Release processes of this test file. */
function helpers(): string[] {
  const all = processesOf(process.env['TMPDIR']!).map(({ command }) => command);
  return all.filter((command) => command.includes('release-process'));
}

function isOver(pid: string): boolean {
  try {
    // A process that its parent has not reaped is a zombie.
    return readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return true;
  }
}
