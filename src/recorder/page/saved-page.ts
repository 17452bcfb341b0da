import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ICON_PATH, LOGO_SVG, pageHtml, readScript } from '../../shared/page/page.js';
import { BASE_STYLE } from '../../shared/page/style.js';
import { excerpt } from '../../shared/redact.js';

/** A page in the file system. */
export interface SavedPage {
  readonly title: string;
  /** Name of its script. */
  readonly script: string;
  readonly style: string;
  readonly body: string;
  /** Id of the element that contains its data as JSON. */
  readonly id: string;
  /** Sources of its pictures and videos, of the policy of the page. */
  readonly media: string;
}

/** The files beside a page. `self` is for a copy of the files on a web server. */
export const FILES_BESIDE = "'self' file:";

/** Characters of a title. */
const MAX_TITLE = 200;

/**
 * Writes a page with its data. A page in the file system cannot fetch, so it contains its script, its style and its data.
 *
 * @param json The data in pieces, so that a large page is never in the memory as a whole. It must not contain `<`: `jsonIn`.
 */
export async function savePage(
  path: string,
  page: SavedPage,
  json: Iterable<string> | AsyncIterable<string>,
): Promise<void> {
  const [before, after] = await partsOf(page);
  async function* pieces(): AsyncGenerator<string> {
    yield before;
    yield* json;
    yield after;
  }
  // A new file replaces the page at once: a browser never reads half of it.
  const part = `${path}.part`;
  try {
    await pipeline(Readable.from(pieces()), createWriteStream(part, { mode: 0o600 }));
    await rename(part, path);
  } catch (error) {
    await rm(part, { force: true }).catch(() => {});
    throw error;
  }
}

/** JSON that can be in a `script` element: text of the recorded pages must not end the element. */
export function jsonIn(data: unknown): string {
  return JSON.stringify(data).replaceAll('<', '\\u003c');
}

/** The HTML before and after the data. */
async function partsOf({ title, script, style, body, id, media }: SavedPage): Promise<[string, string]> {
  const code = await readScript(`${script}.js`);
  const css = `${BASE_STYLE}${style}`;
  const icon = `data:image/svg+xml,${encodeURIComponent(LOGO_SVG)}`;
  const policy = [
    "default-src 'none'",
    `script-src ${hashOf(code)}`,
    `style-src ${hashOf(css)}`,
    // The icon is a `data:` URL.
    `img-src ${[...new Set([...media.split(' '), 'data:'])].join(' ')}`,
    `media-src ${media}`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  const head = `<meta http-equiv="content-security-policy" content="${policy}">
<meta name="referrer" content="no-referrer">
<title>${inHtml(excerpt(title, MAX_TITLE))}</title>
<link rel="icon" href="${icon}">
<style>${css}</style>`;
  const data = `<script type="application/json" id="${id}">`;
  const html = pageHtml(
    head,
    `${body.replaceAll(ICON_PATH, icon)}\n${data}</script>\n<script type="module">${code}</script>`,
  );
  // A title cannot contain this text, because its `<` is escaped.
  const at = html.indexOf(data) + data.length;
  return [html.slice(0, at), html.slice(at)];
}

function inHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}

function hashOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}
