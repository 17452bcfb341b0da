import type { Answer } from '../http/answer.js';
import type { HttpFault } from '../http/http-fault.js';

/** The parts in which pages differ. */
export interface Page {
  readonly title: string;
  /** Names its script and its style sheet: `/pages/<name>.js`, `/pages/<name>.css`. Without one, the base style only. */
  readonly name?: string;
  readonly body: string;
}

/** A page as it is sent. Nothing of a request stands in it: its script asks for what it shows. */
export function pageAnswer({ title, name, body }: Page, status = 200): Answer {
  const own = `<link rel="stylesheet" href="/pages/${name}.css">
<script type="module" src="/pages/${name}.js"></script>`;
  return textAnswer(
    'text/html; charset=utf-8',
    `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" href="/pages/icon.svg">
<link rel="stylesheet" href="/pages/base.css">
${name === undefined ? '' : own}
</head>
<body>
${body}
<noscript><p class="notice">This page needs JavaScript.</p></noscript>
</body>
</html>
`,
    status,
  );
}

/** An error for a person who followed a link. */
export function faultPage({ status, message }: HttpFault): Answer {
  const body = `<main class="notice"><h1>This link leads nowhere</h1><p>${message}</p></main>`;
  return pageAnswer({ title: 'pooled-browser', body }, status);
}

export function textAnswer(type: string, text: string, status = 200): Answer {
  const data = Buffer.from(text);
  return { status, content: { type, size: data.length, data } };
}

/**
 * Of everything that these routes answer. Only our own scripts and styles run, nothing is loaded from or sent to another
 * origin, no other page can frame, open or embed it, and the link with its jwt is told to nobody.
 */
export const PAGE_HEADERS = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "media-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-embedder-policy': 'require-corp',
} as const;
