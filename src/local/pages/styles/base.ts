/** What all pages share: colours for light and dark, type, buttons, badges. */
export const BASE_STYLE = `
:root {
  color-scheme: light dark;
  --bg: #f4f5f8; --panel: #ffffff; --raised: #f8f9fb; --ink: #171a21; --dim: #566072; --line: #dde1e8;
  --accent: #3b5bdb; --on-accent: #ffffff; --soft: #e8edff;
  --good: #0f7a45; --good-soft: #e0f4e9; --warn: #8a5300; --warn-soft: #fdf0d8; --bad: #b4232c; --bad-soft: #fde8e8;
  --shadow: 0 1px 2px rgb(20 25 40 / 6%), 0 4px 16px rgb(20 25 40 / 5%);
  --sans: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --bg: #0d1015; --panel: #161a22; --raised: #1c212b; --ink: #e9ecf2; --dim: #a0a9b8; --line: #2a313d;
    --accent: #91a7ff; --on-accent: #0d1015; --soft: #222b4a;
    --good: #5fd39a; --good-soft: #12301f; --warn: #f0bd62; --warn-soft: #35270d; --bad: #ff9a9a; --bad-soft: #3a1a1d;
    --shadow: 0 1px 2px rgb(0 0 0 / 40%);
  }
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
.bar .grow { flex: 1; }
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
