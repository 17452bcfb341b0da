import { readFile } from 'node:fs/promises';
import { packageFile } from '../package-file.js';

export function pageHtml(head: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${head}
</head>
<body>
${body}
<noscript><p class="notice">This page needs JavaScript.</p></noscript>
</body>
</html>
`;
}

/** Reads a script from dist, also when this file runs from its source: browsers need the compiled script. */
export async function readScript(name: string): Promise<string> {
  return await readFile(packageFile(`dist/pages/${name}`) ?? '', 'utf8');
}

/** Screen readers skip icons: the buttons around them have labels. */
const icon = (path: string): string =>
  `<svg viewBox="0 0 16 16" aria-hidden="true"><path d="${path}"/></svg>`;

export const ICONS = {
  play: icon('M4 2.5v11l9-5.5z'),
  pause: icon('M4 2.5h3v11H4zm5 0h3v11H9z'),
  back: icon('M9.8 3 5 8l4.8 5 1.2-1.1L7.3 8 11 4.1z'),
  forward: icon('M6.2 3 11 8l-4.8 5L5 11.9 8.7 8 5 4.1z'),
  reload: icon('M8 3a5 5 0 1 0 5 5h-1.6A3.4 3.4 0 1 1 8 4.6V7l4-3.2L8 .8z'),
  full: icon('M2 2h5v1.6H3.6V7H2zm7 0h5v5h-1.6V3.6H9zM2 9h1.6v3.4H7V14H2zm10.4 0H14v5H9v-1.6h3.4z'),
} as const;

export const ICON_PATH = '/pages/icon.svg';

export const LOGO = `<img class="logo" src="${ICON_PATH}" alt="" width="22" height="22">`;

export const LOGO_SVG = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
<rect x="2" y="5" width="28" height="22" rx="5" fill="#4263eb"/><circle cx="9" cy="11" r="2" fill="#fff"/>
<circle cx="15" cy="11" r="2" fill="#bac8ff"/><rect x="7" y="16" width="18" height="6" rx="2" fill="#fff"/></svg>`;
