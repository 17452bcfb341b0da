import { LOGO } from '../../shared/page/page.js';

export const LIST_BODY = `
<header class="bar">
  ${LOGO}<h1>Replays</h1><span class="badge" id="count" role="status"></span><span class="grow"></span>
  <input type="search" id="search" placeholder="Name, tag, failed, ok" aria-label="Search by name, tag or result">
</header>
<main>
  <ul class="replays" id="replays" aria-label="Replays"></ul>
  <p class="none" id="none" hidden></p>
</main>`;

export const LIST_STYLE = `
.bar { position: sticky; top: 0; z-index: 1; }
.bar input {
  width: 260px; max-width: 100%; min-height: 32px; padding: 0 10px; border: 1px solid var(--line); border-radius: 8px; background: var(--bg);
}
main { max-width: 1100px; margin: 0 auto; padding: 16px; }
.replays { display: grid; gap: 10px; grid-template-columns: minmax(0, 1fr); }
.replays li {
  display: grid; grid-template-columns: 128px minmax(0, 1fr); gap: 4px 14px; padding: 10px; align-items: start;
}
.shot { width: 128px; height: 80px; border-radius: 8px; background: var(--raised); overflow: hidden; display: block; }
.shot img { width: 100%; height: 100%; object-fit: cover; display: block; }
.replays h2 { font-size: 14px; overflow-wrap: anywhere; display: flex; gap: 4px 10px; flex-wrap: wrap; align-items: center; }
.replays p { color: var(--dim); overflow-wrap: anywhere; display: flex; gap: 2px 14px; flex-wrap: wrap; margin-top: 4px; }
.none { padding: 12vh 16px; text-align: center; color: var(--dim); }
@media (max-width: 560px) {
  main { padding: 10px; }
  .replays li { grid-template-columns: 84px minmax(0, 1fr); }
  .shot { width: 84px; height: 56px; }
  .bar input { width: 100%; }
}
`;
