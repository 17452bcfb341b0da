import { LOGO } from '../../shared/page/page.js';

export const LIST_BODY = `
<header class="bar">
  ${LOGO}<h1>Replays</h1><span class="badge" id="count" role="status"></span>
  <button id="failed" aria-pressed="false" hidden></button><span class="grow"></span>
  <input type="search" id="search" placeholder="Name, tag, failed, succeeded" aria-label="Search by name, tag or result">
</header>
<main class="content">
  <ul class="replays" id="replays" aria-label="Replays"></ul>
  <p class="empty" id="none" hidden></p>
</main>`;

export const LIST_STYLE = `
.content { max-width: 1100px; }
.replays { display: grid; gap: 10px; grid-template-columns: minmax(0, 1fr); }
.replays li { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: 4px 14px; padding: 10px; align-items: start; }
.shot { width: clamp(84px, 22vw, 128px); aspect-ratio: 8 / 5; border-radius: 8px; background: var(--raised); overflow: hidden; }
.shot img { width: 100%; height: 100%; object-fit: cover; display: block; }
.replays p { color: var(--dim); overflow-wrap: anywhere; margin-top: 4px; }
.empty { text-align: center; }
[aria-pressed="true"] { background: var(--soft); border-color: var(--accent); }
`;
