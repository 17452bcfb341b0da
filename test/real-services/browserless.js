/** Starts Browserless with the routes that need only a Chromium. All others refuse to load without their browsers. */
import { Browserless, BrowserlessRoutes } from '@browserless.io/browserless';

const NEEDED = /^Chromium(CDP|Browser)WebSocketRoute$|^Pressure/;
const browserless = new Browserless();
browserless.disableRoutes(...Object.values(BrowserlessRoutes).filter((name) => !NEEDED.test(name)));
await browserless.start();
