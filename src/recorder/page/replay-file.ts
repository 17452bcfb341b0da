import { createHash } from 'node:crypto';
import { rename, writeFile } from 'node:fs/promises';
import { BASE_STYLE, ICON_PATH, LOGO_SVG, pageHtml, readScript } from '../../shared/page/page.js';
import { REPLAY_BODY, REPLAY_STYLE, type ReplayFacts } from './replay-page.js';

/** What a page in the file system contains. */
export interface SavedFacts extends ReplayFacts {
  /** Names of the files beside the page. */
  readonly files: Readonly<Record<'video' | 'poster', string>>;
}

/**
 * Writes the page of a recording beside its video. A page in the file system cannot fetch, so it contains its script, its
 * style and the facts.
 */
export async function saveReplayPage(path: string, facts: SavedFacts): Promise<void> {
  const script = await readScript('replay.js');
  // A new file replaces the page at once: a browser never reads half of it.
  await writeFile(`${path}.part`, html(script, facts), { mode: 0o600 });
  await rename(`${path}.part`, path);
}

function html(script: string, facts: object): string {
  const style = `${BASE_STYLE}${REPLAY_STYLE}`;
  const icon = `data:image/svg+xml,${encodeURIComponent(LOGO_SVG)}`;
  // `self` is for a copy of the files on a web server.
  const policy = [
    "default-src 'none'",
    `script-src ${hashOf(script)}`,
    `style-src ${hashOf(style)}`,
    "img-src 'self' file: data:",
    "media-src 'self' file:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  const head = `<meta http-equiv="content-security-policy" content="${policy}">
<meta name="referrer" content="no-referrer">
<title>Replay</title>
<link rel="icon" href="${icon}">
<style>${style}</style>`;
  // Text of the recorded pages must not end the element.
  const data = JSON.stringify(facts).replaceAll('<', '\\u003c');
  const body = `${REPLAY_BODY.replaceAll(ICON_PATH, icon)}
<script type="application/json" id="recording">${data}</script>
<script type="module">${script}</script>`;
  return pageHtml(head, body);
}

function hashOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}
