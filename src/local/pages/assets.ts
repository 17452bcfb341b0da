import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { Answer } from '../http/answer.js';
import { notFound } from '../http/http-fault.js';
import { textAnswer } from './page-answer.js';
import type { PageCall } from './page-call.js';
import { BASE_STYLE } from './styles/base.js';
import { DASHBOARD_STYLE } from './styles/dashboard.js';
import { LIVE_STYLE } from './styles/live.js';
import { REPLAY_STYLE } from './styles/replay.js';

const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
<rect x="2" y="5" width="28" height="22" rx="5" fill="#4263eb"/><circle cx="9" cy="11" r="2" fill="#fff"/>
<circle cx="15" cy="11" r="2" fill="#bac8ff"/><rect x="7" y="16" width="18" height="6" rx="2" fill="#fff"/></svg>`;

const TEXTS: ReadonlyMap<string, readonly [type: string, text: string]> = new Map([
  ['icon.svg', ['image/svg+xml', ICON]],
  ['base.css', ['text/css', BASE_STYLE]],
  ['replay.css', ['text/css', REPLAY_STYLE]],
  ['live.css', ['text/css', LIVE_STYLE]],
  ['dashboard.css', ['text/css', DASHBOARD_STYLE]],
]);

/** GET /pages/{file}: styles and scripts. They are the same for everyone, so no jwt is asked for. */
export async function asset({ id: file }: PageCall): Promise<Answer> {
  const [type, text] = TEXTS.get(file) ?? ['text/javascript', await readScript(file)];
  return textAnswer(`${type}; charset=utf-8`, text);
}

/** From dist, also when this file itself runs from its source: browsers don't read TypeScript. */
async function readScript(file: string): Promise<string> {
  const root = dirname(createRequire(import.meta.url).resolve('pooled-browser/package.json'));
  if (!file.endsWith('.js')) throw notFound('There is no such file.');
  return await readFile(join(root, 'dist/local/pages/browser', file), 'utf8').catch(() => {
    throw notFound('There is no such script. Is dist/ built?');
  });
}
