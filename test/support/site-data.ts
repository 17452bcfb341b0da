/** What a page sees of the data of its site: the fields of an object, in an async function. */
export const SITE_DATA = `
  localStorage: Object.keys(localStorage),
  sessionStorage: Object.keys(sessionStorage),
  name: window.name,
  caches: await caches.keys(),
  databases: (await indexedDB.databases()).map(({ name }) => name),
  files: await navigator.storage.getDirectory().then((root) => Array.fromAsync(root.keys())),
  workers: (await navigator.serviceWorker.getRegistrations()).length,
`;

/** The script of a worker that writes all the time, without a page, but gives a slow machine no more than it can do. */
export const BUSY_WORKER = `
self.onfetch = () => {};
let open = 0;
setInterval(async () => {
  if (open > 5) return;
  open++;
  try {
    self.cookieStore?.set('worker', '1');
    (await caches.open('worker')).put('/worker', new Response(''));
    await fetch('/cookie');
  } finally {
    open--;
  }
}, 5);`;
