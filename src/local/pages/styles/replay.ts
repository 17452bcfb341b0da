/** The replay viewer. */
export const REPLAY_STYLE = `
body { display: flex; flex-direction: column; height: 100%; }
main { flex: 1; min-height: 0; display: grid; grid-template-columns: minmax(0, 1fr) 372px; gap: 16px; padding: 16px; }
.stage { display: flex; flex-direction: column; min-height: 0; min-width: 0; overflow: hidden; }
.screen { position: relative; flex: 1; min-height: 200px; background: #0b0d11; display: grid; place-items: center; }
.screen video { position: absolute; inset: 0; width: 100%; height: 100%; object-fit: contain; cursor: pointer; }
.state { max-width: 420px; padding: 24px; text-align: center; color: #e9ecf2; }
.state h2 { font-size: 17px; margin-bottom: 6px; }
.state p { color: #b4bccb; }
.controls { padding: 10px 14px 12px; border-top: 1px solid var(--line); background: var(--panel); }
.row { display: flex; align-items: center; gap: 8px; flex-wrap: wrap; }
.row .grow { flex: 1; }
.row .play { width: 40px; justify-content: center; padding: 0; background: var(--accent); color: var(--on-accent); border-color: transparent; }
.row .play:hover:enabled { background: var(--accent); filter: brightness(1.08); }
.row .icon { width: 32px; justify-content: center; padding: 0; }
.time { font-family: var(--mono); font-size: 13px; }
.scrub { position: relative; height: 30px; margin-bottom: 6px; }
.scrub input {
  position: absolute; inset: 0; width: 100%; margin: 0; height: 30px; background: none; appearance: none; cursor: pointer;
}
.scrub .rail, .scrub .played { position: absolute; left: 0; top: 18px; height: 4px; border-radius: 2px; pointer-events: none; }
.scrub .rail { right: 0; background: var(--line); }
.scrub .played { width: 0; background: var(--accent); }
.scrub input::-webkit-slider-thumb {
  appearance: none; width: 14px; height: 14px; margin-top: 10px; border-radius: 50%; background: var(--accent);
  border: 2px solid var(--panel); box-shadow: 0 0 0 1px var(--accent);
}
.scrub input::-moz-range-thumb { width: 11px; height: 11px; border-radius: 50%; background: var(--accent); border: 2px solid var(--panel); }
.marks { position: absolute; left: 7px; right: 7px; top: 4px; height: 10px; pointer-events: none; }
.marks i { position: absolute; width: 3px; height: 9px; margin-left: -1px; border-radius: 2px; background: var(--mark); }
.side { display: flex; flex-direction: column; gap: 16px; min-height: 0; }
.timeline { flex: 1; min-height: 160px; display: flex; flex-direction: column; overflow: hidden; }
.timeline header { padding: 12px 14px 10px; border-bottom: 1px solid var(--line); display: grid; gap: 8px; }
.filters { display: flex; gap: 6px; flex-wrap: wrap; }
.filters button { min-height: 26px; padding: 0 9px; border-radius: 99px; font-size: 12px; }
.filters button[aria-pressed="false"] { color: var(--dim); background: var(--raised); text-decoration: line-through; }
.filters i { width: 7px; height: 7px; border-radius: 50%; background: var(--mark); }
.entries { flex: 1; overflow-y: auto; padding: 6px; position: relative; }
.entries button {
  width: 100%; border: 0; border-radius: 8px; background: none; padding: 5px 8px; text-align: left; min-height: 30px;
  display: grid; grid-template-columns: 46px 8px minmax(0, 1fr); gap: 8px; align-items: baseline;
}
.entries i { width: 8px; height: 8px; border-radius: 50%; background: var(--mark); }
.entries time { font: 12px var(--mono); color: var(--dim); }
.entries .what { overflow-wrap: anywhere; }
.entries .kind { margin-right: 7px; font-size: 12px; color: var(--dim); }
.entries [aria-current="true"] { background: var(--soft); }
.entries [aria-current="true"] time, .entries [aria-current="true"] .kind { color: var(--ink); }
.entries .empty { padding: 14px 10px; color: var(--dim); }
.facts { padding: 12px 14px; }
.facts dl { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: 4px 14px; margin-top: 8px; align-items: baseline; }
.facts dt { color: var(--dim); }
.facts dd { overflow-wrap: anywhere; }
.keys { color: var(--dim); font-size: 12px; display: flex; gap: 4px 12px; flex-wrap: wrap; margin-top: 8px; }
.pages { --mark: #3b5bdb; } .input { --mark: #0f8a6d; } .console { --mark: #7a8496; } .errors { --mark: #d6333f; }
.lease { --mark: #9c5bd6; }
@media (prefers-color-scheme: dark) { .pages { --mark: #91a7ff; } .input { --mark: #4fd1b0; } .errors { --mark: #ff7b7b; } }
.stage:fullscreen { border: 0; border-radius: 0; }
@media (max-width: 900px) {
  body, main { height: auto; }
  main { grid-template-columns: minmax(0, 1fr); padding: 10px; gap: 10px; }
  .screen { aspect-ratio: 16 / 10; }
  .entries { max-height: 50vh; }
}
`;
