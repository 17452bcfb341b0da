/**
 * The process of the local service that `baseUrl: 'local'` starts. It reads its settings from the first line of its
 * input, and writes its address as one line of JSON. It ends with its input, or with the process that owns it.
 */
import { once } from 'node:events';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { ADDRESS_FILE, type LocalServiceSettings, type StartAnswer } from '../pool/local-service.js';
import { NO_UDP } from './browser/chromium-flags.js';
import { browsersThatFit, thisMachine } from '../shared/machine.js';
import { startLocalPool } from './start-local-pool.js';

/** Milliseconds between two checks of the owner. */
const OWNER_INTERVAL = 500;

const input = createInterface({ input: process.stdin });
const ended = once(input, 'close');
const [line] = (await once(input, 'line')) as [string];
const settings = JSON.parse(line) as LocalServiceSettings;
const { browser = 'chromium', shared, args = [], headful = false, liveView = false } = settings;
const { pool: name, size = browsersThatFit(thisMachine()), maxLeases, isLimited } = settings;
try {
  await using pool = await startLocalPool({
    browser,
    pools: [{ name, size, maxLeases, onDemand: true, headless: !headful }],
    recording: { folder: settings.recordings },
    args: [...args, ...(isLimited && browser === 'chromium' ? NO_UDP : [])],
    quirks: { liveViewsHeadless: liveView },
  });
  sendAnswer({ baseUrl: pool.baseUrl, token: pool.token });
  await (shared ? endOf(shared.owner) : ended);
  if (shared) rmSync(shared.folder, { recursive: true, force: true });
} catch (error) {
  sendAnswer({ name: (error as Error).name, message: (error as Error).message });
}
// After a failed start the input is still open.
process.stdin.destroy();

function sendAnswer(answer: StartAnswer): void {
  const text = `${JSON.stringify(answer)}\n`;
  if (!shared) return void process.stdout.write(text);
  const path = join(shared.folder, ADDRESS_FILE);
  writeFileSync(`${path}.part`, text, { mode: 0o600 });
  renameSync(`${path}.part`, path);
}

async function endOf(owner: number): Promise<void> {
  while (isRunning(owner)) await sleep(OWNER_INTERVAL);
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
