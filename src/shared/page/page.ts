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

/** The style of all pages: light and dark colours, text, buttons, badges. */
export const BASE_STYLE = `
:root {
  color-scheme: light dark;
  --bg: light-dark(#f4f5f8, #0d1015); --panel: light-dark(#ffffff, #161a22); --raised: light-dark(#f8f9fb, #1c212b);
  --ink: light-dark(#171a21, #e9ecf2); --dim: light-dark(#566072, #a0a9b8); --line: light-dark(#dde1e8, #2a313d);
  --accent: light-dark(#3b5bdb, #91a7ff); --on-accent: light-dark(#ffffff, #0d1015); --soft: light-dark(#e8edff, #222b4a);
  --good: light-dark(#0f7a45, #5fd39a); --good-soft: light-dark(#e0f4e9, #12301f);
  --warn: light-dark(#8a5300, #f0bd62); --warn-soft: light-dark(#fdf0d8, #35270d);
  --bad: light-dark(#b4232c, #ff9a9a); --bad-soft: light-dark(#fde8e8, #3a1a1d);
  --shadow: 0 1px 2px light-dark(rgb(20 25 40 / 6%), rgb(0 0 0 / 40%)), 0 4px 16px light-dark(rgb(20 25 40 / 5%), transparent);
  --sans: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
*, *::before, *::after { box-sizing: border-box; }
[hidden] { display: none !important; }
html { height: 100%; }
body { margin: 0; min-height: 100%; background: var(--bg); color: var(--ink); font: 14px/1.45 var(--sans); }
h1, h2, h3, p, ol, ul, dl, dd { margin: 0; padding: 0; }
ol, ul { list-style: none; }
h1 { font-size: 16px; font-weight: 650; letter-spacing: -.01em; }
h2 { font-size: 13px; font-weight: 650; }
a { color: var(--accent); text-underline-offset: 2px; }
code, .mono { font-family: var(--mono); font-size: .92em; }
.dim { color: var(--dim); }
.number { font-variant-numeric: tabular-nums; }
button, select, input { font: inherit; color: inherit; }
button, select, .button {
  min-height: 32px; padding: 0 10px; border: 1px solid var(--line); border-radius: 8px; background: var(--panel);
  color: var(--ink); cursor: pointer; text-decoration: none; display: inline-flex; align-items: center; gap: 6px;
}
button:hover:enabled, .button:hover, select:hover { background: var(--raised); border-color: var(--dim); }
button:disabled { opacity: .45; cursor: default; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
svg { width: 16px; height: 16px; fill: currentColor; flex: none; }
.bar {
  display: flex; align-items: center; gap: 10px; flex-wrap: wrap; padding: 10px 16px; background: var(--panel);
  border-bottom: 1px solid var(--line);
}
.grow { flex: 1; }
.icon { width: 32px; justify-content: center; padding: 0; }
.logo { width: 22px; height: 22px; }
.panel { background: var(--panel); border: 1px solid var(--line); border-radius: 12px; box-shadow: var(--shadow); }
.badge {
  display: inline-flex; align-items: center; gap: 6px; padding: 1px 9px; border-radius: 99px; font-size: 12px;
  font-weight: 600; background: var(--raised); color: var(--dim); white-space: nowrap;
}
.badge::before { content: ""; width: 7px; height: 7px; border-radius: 50%; background: currentColor; }
.badge.good { background: var(--good-soft); color: var(--good); }
.badge.warn { background: var(--warn-soft); color: var(--warn); }
.badge.bad { background: var(--bad-soft); color: var(--bad); }
.badge.live { background: var(--soft); color: var(--accent); }
.badge.pulse::before { animation: pulse 1.4s ease-in-out infinite; }
@keyframes pulse { 50% { opacity: .25; } }
.notice { max-width: 480px; margin: 18vh auto 0; padding: 0 24px; text-align: center; }
.notice h1 { font-size: 20px; margin-bottom: 8px; }
.notice p { color: var(--dim); }
kbd {
  font: 11px var(--mono); padding: 1px 5px; border: 1px solid var(--line); border-radius: 4px; background: var(--raised);
}
.visually-hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
@media (prefers-reduced-motion: reduce) { *, *::before { animation: none !important; transition: none !important; } }
`;
