import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WebSocket, WebSocketServer, type RawData } from 'ws';
import { BrowserPool } from '../../src/index.js';
import { findBrowser, startLocalPool, type LocalPool } from '../../src/local.js';
import { cdp } from '../../src/services.js';
import { processesOf } from './processes.js';
import { realSession } from './real-session.js';

/** A browser whose files this process does not see at their paths, as if it ran on another machine. */
export interface FarBrowser extends AsyncDisposable {
  readonly pool: BrowserPool<object>;
  /** Names and sizes of the downloaded files on the browser's side. */
  files(): { name: string; size: number }[];
  /** The same of the uploaded files. */
  uploads(): { name: string; size: number }[];
}

/** Why this machine can't start a process with mounts of its own; undefined if it can. */
export function namespaceRefusal(): string | undefined {
  try {
    execFileSync('unshare', [...UNSHARE, 'mount', '-t', 'tmpfs', 'none', tmpdir()], { stdio: 'pipe' });
    return undefined;
  } catch (error) {
    return `unshare and mount are not allowed here (${(error as Error).message.split('\n')[1] ?? 'not found'})`;
  }
}

export const UNSHARE = [...(process.getuid?.() === 0 ? [] : ['--map-root-user']), '--mount'];

/** A Chromium in a mount namespace of its own, in which the folder of temporary files is another one. */
export async function startInNamespace(size = 1): Promise<FarBrowser> {
  const script = join(tmpdir(), 'chromium-elsewhere');
  const inside = `mount -t tmpfs none "${tmpdir()}" && exec "${await findBrowser()}" "$@"`;
  writeFileSync(script, `#!/bin/sh\nexec unshare ${UNSHARE.join(' ')} sh -c '${inside}' sh "$@"\n`);
  chmodSync(script, 0o700);
  const local = await startLocalPool({ pools: [{ name: 'far', size }], executablePath: script });
  const pool = new BrowserPool('far', { baseUrl: local.baseUrl, token: local.token });
  const roots = () =>
    processesOf(tmpdir())
      .filter(({ command }) => command.includes('--user-data-dir') && !command.includes('--type='))
      .map(({ pid }) => `/proc/${pid}/root`);
  return farBrowser(pool, local, roots);
}

/** A Chromium of this machine behind a proxy that puts every path into another folder. Works on every machine. */
export async function startBehindPaths(): Promise<FarBrowser> {
  const root = join(tmpdir(), 'elsewhere');
  mkdirSync(root, { recursive: true });
  const local = await startLocalPool({ pools: [{ name: 'far', size: 1 }] });
  const session = await realSession(local);
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false });
  await once(server, 'listening');
  server.on('connection', (client) => {
    const browser = new WebSocket(String(session['cdp_ws_url']), { perMessageDeflate: false });
    client.pause();
    browser.on('open', () => client.resume());
    client.on('message', (data: RawData) => browser.send(move(String(data), (path) => `${root}${path}`)));
    browser.on('message', (data: RawData) =>
      client.send(move(String(data), (path) => (path.startsWith(root) ? path.slice(root.length) : path))),
    );
    browser.on('close', () => client.terminate());
    client.on('close', () => browser.terminate());
  });
  const { port } = server.address() as AddressInfo;
  const pool = new BrowserPool('far', { service: cdp(`ws://127.0.0.1:${port}/`) });
  return farBrowser(pool, local, () => [root], server);
}

const PATHS = /("downloadPath":|"filePath":|"files":\[)"([^"]+)"/g;

function move(text: string, change: (path: string) => string): string {
  return text.replaceAll(PATHS, (_all, before: string, path: string) => `${before}"${change(path)}"`);
}

/** @param roots The folders that the browser sees as the root of its file system. */
function farBrowser(
  pool: BrowserPool<object>,
  local: LocalPool,
  roots: () => string[],
  server?: WebSocketServer,
): FarBrowser {
  const list = (prefix: string) => roots().flatMap((root) => filesIn(join(root, tmpdir()), prefix));
  return {
    pool,
    files: () => list('pooled-browser-artifacts-'),
    uploads: () => list('pooled-browser-uploads-'),
    [Symbol.asyncDispose]: async () => {
      await pool.close();
      await local.close();
      server?.close();
    },
  };
}

/** The files in the folders whose names begin with a prefix. */
function filesIn(folder: string, prefix: string): { name: string; size: number }[] {
  return readdirSync(folder)
    .filter((name) => name.startsWith(prefix))
    .flatMap((name) => readdirSync(join(folder, name), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .map((name) => ({ name, size: statSync(name).size }));
}
