import type { Role } from './library-objects.js';

/** Which arguments of a call its text shows. None of them is something that was typed. */
export type Shown =
  | 'nothing'
  | 'selector'
  | 'selectors'
  | 'url'
  | 'word'
  | 'numbers'
  | 'key'
  | 'selectorAndKey'
  | 'files'
  | 'allFiles'
  | 'selectorAndFiles';

type Methods = Readonly<Record<string, Shown>>;

/** The assertions of `@playwright/test` call this method, which is not public. If a version has none, no assertion is noted. */
export const ASSERTION = '_expect';

function methods(names: Partial<Readonly<Record<Shown, string>>>): Methods {
  const lists = Object.entries(names) as [Shown, string][];
  return Object.fromEntries(
    lists.flatMap(([shown, list]) =>
      list
        .trim()
        .split(/\s+/)
        .map((name) => [name, shown] as const),
    ),
  );
}

const OF_FRAMES: Methods = methods({
  selector: `click dblclick tap hover focus check uncheck setChecked fill type selectOption select waitForSelector $ $$ $eval
    $$eval textContent innerText innerHTML inputValue getAttribute isChecked isDisabled isEditable isEnabled isHidden isVisible
    dispatchEvent`,
  selectors: 'dragAndDrop',
  selectorAndKey: 'press',
  selectorAndFiles: 'setInputFiles',
  url: 'goto waitForURL',
  word: 'waitForLoadState waitForTimeout',
  nothing: `setContent content title addScriptTag addStyleTag evaluate evaluateHandle waitForFunction waitForNavigation
    frameElement ${ASSERTION}`,
});

const OF_NETWORK: Methods = methods({
  url: 'route unroute routeWebSocket',
  files: 'routeFromHAR',
  word: 'exposeFunction exposeBinding waitForEvent',
  nothing: 'unrouteAll addInitScript setExtraHTTPHeaders setGeolocation cookies setCookie deleteCookie close',
});

/**
 * The methods that are noted, of both libraries. The list names them one by one, and not all that return a promise: Puppeteer calls
 * methods of its pages and frames itself while a page loads, and names them as public ones. Each method also needs its own choice
 * of arguments that hold nothing secret.
 *
 * Left out: what does nothing in the browser, such as `locator` and `url`; what reads a response; and what a handler does with an
 * intercepted request, one call for each request of a page, among which nobody would find the steps.
 */
export const METHODS: Readonly<Record<Role, Methods>> = {
  browser: methods({
    nothing: `newContext newPage createBrowserContext close disconnect waitForTarget newBrowserCDPSession startTracing stopTracing
      cookies setCookie deleteCookie installExtension uninstallExtension`,
  }),
  context: {
    ...OF_NETWORK,
    ...methods({
      url: 'overridePermissions',
      word: 'setOffline',
      nothing: `newPage addCookies clearCookies grantPermissions clearPermissions clearPermissionOverrides setPermission
        setHTTPCredentials storageState setStorageState newCDPSession waitForTarget`,
    }),
  },
  page: {
    ...OF_FRAMES,
    ...OF_NETWORK,
    ...methods({
      url: 'waitForRequest waitForResponse',
      word: `emulateMediaType emulateTimezone emulateCPUThrottling removeExposedFunction setRequestInterception setOfflineMode
        setJavaScriptEnabled setCacheEnabled setBypassCSP setBypassServiceWorker setDragInterception`,
      nothing: `reload goBack goForward waitForNetworkIdle waitForFrame waitForFileChooser waitForDevicePrompt screenshot pdf
        createPDFStream bringToFront setViewportSize setViewport resize emulateMedia emulateMediaFeatures emulate
        emulateNetworkConditions emulateIdleState emulateVisionDeficiency authenticate setUserAgent addLocatorHandler
        removeLocatorHandler pause requestGC ariaSnapshot metrics evaluateOnNewDocument removeScriptToEvaluateOnNewDocument
        createCDPSession`,
    }),
  },
  frame: OF_FRAMES,
  locator: methods({
    key: 'press',
    files: 'setInputFiles',
    word: 'getAttribute dispatchEvent',
    nothing: `click dblclick tap hover focus blur check uncheck setChecked fill clear type pressSequentially selectOption
      selectText textContent innerText innerHTML inputValue isChecked isDisabled isEditable isEnabled isHidden isVisible count all
      allInnerTexts allTextContents boundingBox screenshot scrollIntoViewIfNeeded waitFor waitForFunction evaluate evaluateAll
      evaluateHandle ariaSnapshot dragTo drop highlight elementHandle elementHandles scroll wait waitHandle ${ASSERTION}`,
  }),
  elementHandle: methods({
    key: 'press',
    files: 'setInputFiles',
    allFiles: 'uploadFile',
    word: 'getAttribute dispatchEvent waitForElementState',
    selector: '$ $$ $eval $$eval waitForSelector',
    nothing: `click dblclick tap hover focus check uncheck setChecked fill type selectOption select selectText textContent
      innerText innerHTML inputValue isChecked isDisabled isEditable isEnabled isHidden isVisible boundingBox boxModel screenshot
      scrollIntoViewIfNeeded scrollIntoView evaluate evaluateHandle contentFrame ownerFrame drag dragEnter dragOver drop
      dragAndDrop touchStart touchMove touchEnd autofill`,
  }),
  jsHandle: methods({ word: 'getProperty', nothing: 'evaluate evaluateHandle getProperties jsonValue' }),
  keyboard: methods({ key: 'press down up', nothing: 'type insertText sendCharacter' }),
  mouse: methods({
    numbers: 'click dblclick move wheel',
    nothing: 'down up drag dragEnter dragOver drop dragAndDrop',
  }),
  touchscreen: methods({ numbers: 'tap touchStart touchMove', nothing: 'touchEnd' }),
  dialog: methods({ nothing: 'accept dismiss' }),
  download: methods({ files: 'saveAs', nothing: 'path failure createReadStream cancel delete' }),
  fileChooser: methods({ files: 'setFiles accept', nothing: 'cancel' }),
  request: methods({ url: 'get post put patch delete head fetch', nothing: 'storageState' }),
  clock: methods({
    word: 'fastForward runFor',
    nothing: 'install pauseAt resume setFixedTime setSystemTime',
  }),
  cdpSession: methods({ word: 'send' }),
};

/**
 * Puppeteer reads the line of the caller, for the stacks of errors in the page, at a fixed place of the stack, which a replaced
 * method would move. Those of pages call the methods of the main frame, where the calls are noted; those of handles are not noted.
 */
const BY_PLACE = ['evaluate', 'evaluateHandle', '$eval', '$$eval'];
export const UNCHANGED_OF_PUPPETEER: Partial<Readonly<Record<Role, readonly string[]>>> = {
  page: BY_PLACE,
  elementHandle: BY_PLACE,
  jsHandle: BY_PLACE,
};

/** Puppeteer's methods that return a locator, which has neither a page nor a text of its own. */
export const MAKERS_OF_PUPPETEER: Partial<Readonly<Record<Role, readonly string[]>>> = {
  page: ['locator'],
  frame: ['locator'],
  elementHandle: ['asLocator'],
  locator: [
    'clone',
    'setTimeout',
    'setVisibility',
    'setWaitForEnabled',
    'setEnsureElementIsInTheViewport',
    'setWaitForStableBoundingBox',
    'map',
    'mapHandle',
    'filter',
    'filterHandle',
  ],
};
