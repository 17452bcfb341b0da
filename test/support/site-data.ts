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
