/** The style of all pages: colours in light and dark, text, buttons, fields, badges, the focus ring. Pages add only their layout. */
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
html { height: 100%; scroll-padding-top: 64px; }
body {
  display: flex; flex-direction: column; min-height: 100%; margin: 0; background: var(--bg); color: var(--ink);
  font: 14px/1.45 var(--sans);
}
h1, h2, h3, p, ol, ul, dl, dd, figure { margin: 0; padding: 0; }
ol, ul { list-style: none; }
h1, h2, h3, strong { font-weight: 650; overflow-wrap: anywhere; }
h1 { font-size: 16px; letter-spacing: -.01em; }
h2 { font-size: 15px; }
h3 { font-size: 14px; }
a { color: var(--accent); text-underline-offset: 2px; }
code, .mono { font-family: var(--mono); font-size: .92em; }
.dim, .small, .empty { color: var(--dim); }
.small { font-size: 12px; }
.number, time { font-variant-numeric: tabular-nums; }
button, select, input, textarea, .button {
  min-height: 32px; padding: 0 10px; border: 1px solid var(--line); border-radius: 8px; background: var(--panel);
  color: var(--ink); font: inherit;
}
button, select, .button { cursor: pointer; text-decoration: none; display: inline-flex; align-items: center; gap: 6px; }
button:hover:enabled, select:hover, .button:hover { box-shadow: inset 0 0 0 99px color-mix(in srgb, currentColor 9%, transparent); }
button:disabled { opacity: .45; cursor: default; }
input, textarea { padding: 4px 10px; border-color: var(--dim); background: var(--raised); }
::placeholder { color: var(--dim); opacity: 1; }
.primary, .danger, button.fault { font-weight: 600; }
.primary { background: var(--accent); border-color: transparent; color: var(--on-accent); }
.danger { border-color: currentColor; color: var(--bad); }
.primary.danger { background: var(--bad); color: var(--panel); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
svg { width: 16px; height: 16px; fill: currentColor; flex: none; }
.bar, .line { display: flex; align-items: center; gap: 6px 10px; flex-wrap: wrap; }
.bar { padding: 10px 16px; background: var(--panel); border-bottom: 1px solid var(--line); }
.bar > input { width: 260px; }
.content { display: grid; gap: 16px; padding: 16px; width: 100%; margin: 0 auto; grid-template-columns: minmax(0, 1fr); }
.grow { flex: 1; }
.icon { width: 32px; justify-content: center; padding: 0; }
.logo { width: 22px; height: 22px; }
.panel { background: var(--panel); border: 1px solid var(--line); border-radius: 12px; box-shadow: var(--shadow); }
.empty { padding: 14px 16px; }
.badge, .tag { font-size: 12px; padding: 1px 9px; border-radius: 99px; color: var(--dim); }
.badge { display: inline-flex; align-items: center; gap: 6px; font-weight: 600; background: var(--raised); white-space: nowrap; }
.badge::before { content: ""; width: 7px; height: 7px; border-radius: 50%; background: currentColor; }
.badge.good { background: var(--good-soft); color: var(--good); }
.badge.warn { background: var(--warn-soft); color: var(--warn); }
.badge.bad, .fault { background: var(--bad-soft); color: var(--bad); }
.badge.live { background: var(--soft); color: var(--accent); }
.badge.pulse::before { animation: pulse 1.4s ease-in-out infinite; }
@keyframes pulse { 50% { opacity: .25; } }
.tag { padding: 0 7px; border-radius: 5px; border: 1px solid var(--line); background: var(--panel); overflow-wrap: anywhere; }
.notice { max-width: 480px; margin: 18vh auto 0; padding: 0 24px; text-align: center; }
.notice > * + * { margin-top: 8px; }
.notice p { color: var(--dim); }
kbd { font: 11px var(--mono); padding: 1px 5px; border: 1px solid var(--line); border-radius: 4px; background: var(--raised); }
.visually-hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
@media (min-width: 601px) {
  header.bar { position: sticky; top: 0; z-index: 1; }
}
@media (max-width: 600px) {
  .content { padding: 10px; gap: 10px; }
  .bar > input { width: 100%; }
}
@media (prefers-reduced-motion: reduce) { *, *::before { animation: none !important; transition: none !important; } }
`;
