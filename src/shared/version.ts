/** Version of this package, as in package.json. Not read from there: an application can be bundled into one file. */
export const VERSION = '0.1.0';

/** Sent with each request and each WebSocket upgrade: some firewalls refuse requests without it. */
export const USER_AGENT = `pooled-browser/${VERSION}`;
