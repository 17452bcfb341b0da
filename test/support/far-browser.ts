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

const UNSHARE = [...(process.getuid?.() === 0 ? [] : ['--map-root-user']), '--mount'];

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
  return {
    pool,
    files: () => roots().flatMap((root) => filesIn(join(root, tmpdir()))),
    uploads: () => roots().flatMap((root) => filesIn(join(root, tmpdir()), 'pooled-browser-uploads-')),
    [Symbol.asyncDispose]: () => close(pool, local),
  };
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
  return {
    pool,
    files: () => filesIn(join(root, tmpdir())),
    uploads: () => filesIn(join(root, tmpdir()), 'pooled-browser-uploads-'),
    [Symbol.asyncDispose]: async () => {
      await close(pool, local);
      server.close();
    },
  };
}

const PATHS = /("downloadPath":|"filePath":|"files":\[)"([^"]+)"/g;

function move(text: string, change: (path: string) => string): string {
  return text.replaceAll(PATHS, (_all, before: string, path: string) => `${before}"${change(path)}"`);
}

async function close(pool: BrowserPool<object>, local: LocalPool): Promise<void> {
  await pool.close();
  await local.close();
}

function filesIn(folder: string, prefix = 'pooled-browser-artifacts-'): { name: string; size: number }[] {
  return readdirSync(folder)
    .filter((name) => name.startsWith(prefix))
    .flatMap((name) =>
      readdirSync(join(folder, name), { recursive: true, encoding: 'utf8' }).map((file) =>
        join(folder, name, file),
      ),
    )
    .map((path) => ({ name: path, file: statSync(path) }))
    .flatMap(({ name, file }) => (file.isFile() ? [{ name, size: file.size }] : []));
}
