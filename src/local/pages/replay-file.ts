import { createHash } from 'node:crypto';
import { rename, writeFile } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Recording } from '../replays/recording.js';
import { BASE_STYLE, ICON_PATH, LOGO_SVG, pageHtml, readScript } from './page.js';
import { factsOf, REPLAY_BODY, REPLAY_STYLE, withoutPath } from './replay-page.js';

/**
 * Writes the page of a recording beside its video, if the recording outlives this process. A page in the file system
 * cannot fetch, so it contains its script, its style and the facts.
 *
 * @param end The facts of a recording that has ended, before they are public.
 */
export async function saveReplayPage(
  recording: Recording,
  end?: { video: Recording['video']; finishedAt: Date },
): Promise<void> {
  const { page, poster, video } = recording.files;
  if (page === undefined) return;
  const facts = {
    ...factsOf(recording),
    ...(end && {
      state: end.video ? 'ready' : 'none',
      finishedAt: end.finishedAt.toISOString(),
      video: end.video && withoutPath(end.video),
    }),
    files: { video: basename(video), poster: basename(poster) },
  };
  const script = await readScript('replay.js');
  // A new file replaces the page at once: a browser never reads half of it.
  await writeFile(`${page}.part`, html(script, facts), { mode: 0o600 });
  await rename(`${page}.part`, page);
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
