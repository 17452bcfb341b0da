import * as v from 'valibot';
import { isRecord, jsonOf } from '../shared/json.js';

/** A name from outside that becomes part of a path. Chromium's are UUIDs. */
const guid = v.pipe(v.string(), v.regex(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i));
const text = v.string();
/** Playwright gives the connection itself the empty one. */
const idOfSession = v.pipe(v.string(), v.nonEmpty());
const count = v.pipe(v.number(), v.minValue(0));
/** Most pages, contexts, windows or extensions of a browser. Each costs commands, and nothing else would run for minutes. */
const MOST_THINGS = 2000;
const things = <Field extends v.GenericSchema>(field: Field) =>
  v.pipe(v.array(v.unknown()), v.maxLength(MOST_THINGS), v.array(field));
const may = <Field extends v.GenericSchema>(field: Field) => v.optional(field);

const targetInfo = v.looseObject({
  targetId: text,
  type: text,
  url: text,
  browserContextId: may(text),
  openerId: may(text),
  parentFrameId: may(text),
  title: may(text),
});

interface FrameTree {
  readonly frame: {
    readonly id: string;
    readonly url: string;
    readonly securityOrigin?: string | undefined;
  };
  readonly childFrames?: readonly FrameTree[] | undefined;
}

const frameTree: v.GenericSchema<FrameTree> = v.object({
  frame: v.object({ id: text, url: text, securityOrigin: may(text) }),
  childFrames: may(v.array(v.lazy(() => frameTree))),
});

const preview = v.looseObject({ properties: v.array(v.looseObject({ name: text, value: may(text) })) });
/** Playwright shows a value, or its description. */
const remoteObjects = v.array(
  v.pipe(
    v.looseObject({
      type: text,
      subtype: may(text),
      description: may(text),
      unserializableValue: may(text),
      objectId: may(text),
      preview: may(preview),
    }),
    v.check(
      (one) =>
        one.type === 'undefined' ||
        'value' in one ||
        (one.unserializableValue ?? one.description) !== undefined,
    ),
  ),
);
const stackTrace = v.looseObject({
  callFrames: v.array(v.looseObject({ url: text, lineNumber: v.number(), columnNumber: v.number() })),
});
const logEntry = v.looseObject({
  entry: v.looseObject({
    level: text,
    timestamp: v.number(),
    text,
    url: may(text),
    lineNumber: may(v.number()),
    args: may(remoteObjects),
    stackTrace: may(stackTrace),
  }),
});
const frameNavigated = v.looseObject({
  frame: v.looseObject({
    id: text,
    parentId: may(text),
    url: text,
    name: may(text),
    // The URL that could not be loaded, if this is an error page.
    unreachableUrl: may(text),
    loaderId: may(text),
  }),
});

const evaluated = v.object({
  result: v.object({ value: may(v.unknown()), objectId: may(text) }),
  exceptionDetails: may(v.object({ text: may(text), exception: may(v.object({ description: may(text) })) })),
});

/** The function in pages through which Playwright receives the calls of exposed functions. */
const PLAYWRIGHTS_BINDING = '__playwright__binding__';

const headers = v.record(text, text);
const request = v.looseObject({ url: text, method: text, headers, postData: may(text) });
const response = v.looseObject({
  url: text,
  status: v.number(),
  statusText: text,
  headers,
  timing: may(
    v.looseObject({
      requestTime: v.number(),
      dnsStart: v.number(),
      dnsEnd: v.number(),
      connectStart: v.number(),
      connectEnd: v.number(),
      sslStart: v.number(),
      sendStart: v.number(),
      receiveHeadersEnd: v.number(),
    }),
  ),
});

const ofFrame = v.looseObject({ frameId: text });
const ofRequest = v.looseObject({ requestId: text });
const ofContext = v.looseObject({ context: text });

const networkHeaders = v.array(v.looseObject({ name: text }));
const ofNetworkRequest = v.looseObject({
  context: v.nullish(text),
  redirectCount: v.number(),
  request: v.looseObject({ request: text, url: text, method: text, headers: networkHeaders }),
});
const ofNetworkResponse = v.looseObject({
  ...ofNetworkRequest.entries,
  response: v.looseObject({ url: text, status: v.number(), headers: networkHeaders }),
});

/** The events of a browser that this library reads, with the fields that it reads. */
export const EVENTS = {
  'Browser.downloadWillBegin': v.object({ guid, url: text, suggestedFilename: text, frameId: may(text) }),
  'Browser.downloadProgress': v.object({
    guid,
    state: text,
    receivedBytes: may(v.number()),
    totalBytes: may(v.number()),
    filePath: may(text),
  }),
  'Page.javascriptDialogOpening': v.object({ message: text, type: text, defaultPrompt: may(text) }),
  'Page.javascriptDialogClosed': v.object({ result: may(v.boolean()) }),
  'Page.downloadWillBegin': v.object({ guid, url: may(text), suggestedFilename: may(text) }),
  'Target.attachedToTarget': v.object({
    sessionId: idOfSession,
    targetInfo,
    waitingForDebugger: may(v.boolean()),
  }),
  'Target.detachedFromTarget': v.object({ sessionId: may(idOfSession) }),
  'Target.targetCreated': v.object({ targetInfo }),
  'Target.targetInfoChanged': v.object({ targetInfo }),
  'Target.targetDestroyed': v.looseObject({ targetId: text }),
  'Page.loadEventFired': v.looseObject({}),
  'Inspector.targetReloadedAfterCrash': v.object({}),
  'Inspector.targetCrashed': v.object({}),
  'Page.screencastFrame': v.object({ sessionId: v.number() }),
  'Log.entryAdded': logEntry,
  'Page.frameAttached': v.looseObject({ frameId: text, parentFrameId: text }),
  'Page.frameDetached': ofFrame,
  'Page.frameNavigated': frameNavigated,
  'Runtime.executionContextCreated': v.object({
    context: v.object({
      id: v.number(),
      origin: text,
      auxData: may(v.object({ frameId: may(text), isDefault: may(v.boolean()) })),
    }),
  }),
  'Runtime.executionContextDestroyed': v.looseObject({ executionContextId: v.number() }),
  'Runtime.executionContextsCleared': v.object({}),
  'Runtime.bindingCalled': v.pipe(
    v.object({ name: may(text), payload: text, executionContextId: v.number() }),
    // A page can call this function with any text, and Playwright does not catch what it throws then.
    v.check(({ name, payload }) => name !== PLAYWRIGHTS_BINDING || isRecord(jsonOf(payload))),
  ),
  'Fetch.requestPaused': v.object({
    requestId: text,
    frameId: text,
    resourceType: may(text),
    networkId: may(text),
    responseStatusCode: may(v.number()),
    responseHeaders: may(v.array(v.looseObject({ name: text, value: may(text) }))),
    request: v.object({
      url: text,
      urlFragment: may(text),
      // Any, also of a client that changes it: the browser waits for an answer to each request.
      method: text,
      // A record would lose those with names such as `constructor`.
      headers: v.custom<Record<string, string>>(
        (one) => isRecord(one) && Object.values(one).every((value) => typeof value === 'string'),
      ),
      hasPostData: may(v.boolean()),
      // Without `bytes`: a file of the browser's machine in a form, or a stream.
      postDataEntries: may(v.array(v.object({ bytes: may(v.union([text, v.instance(Uint8Array)])) }))),
    }),
  }),
  'Network.requestWillBeSent': v.looseObject({
    requestId: text,
    request,
    type: may(text),
    redirectResponse: may(response),
  }),
  'Network.responseReceived': v.looseObject({ requestId: text, loaderId: may(text), response }),
  'Network.loadingFinished': ofRequest,
  'Network.loadingFailed': v.looseObject({ requestId: text, errorText: text }),
  'Runtime.consoleAPICalled': v.looseObject({
    type: text,
    timestamp: v.number(),
    args: remoteObjects,
    executionContextId: v.number(),
    stackTrace: may(stackTrace),
  }),
  'Runtime.exceptionThrown': v.looseObject({
    exceptionDetails: v.looseObject({
      text,
      exception: may(
        v.looseObject({
          type: text,
          description: may(text),
          preview: may(preview),
        }),
      ),
      stackTrace: may(stackTrace),
    }),
  }),
  'browsingContext.downloadWillBegin': v.looseObject({}),
  'browsingContext.userPromptOpened': v.looseObject({ context: text, type: text, message: text }),
  'browsingContext.userPromptClosed': ofContext,
  'input.fileDialogOpened': ofContext,
  'Page.fileChooserOpened': v.looseObject({
    frameId: text,
    mode: may(text),
    backendNodeId: may(v.number()),
  }),
  'Fetch.authRequired': v.looseObject({
    requestId: text,
    request,
    authChallenge: v.looseObject({ origin: text }),
  }),
  'Network.responseReceivedExtraInfo': v.looseObject({
    requestId: text,
    headers,
    statusCode: may(v.number()),
  }),
  'network.authRequired': ofNetworkRequest,
  'network.responseCompleted': ofNetworkResponse,
  'network.responseStarted': ofNetworkResponse,
};

const frameOfWebSocket = v.looseObject({
  requestId: text,
  response: v.looseObject({ opcode: v.number(), payloadData: text }),
});

/**
 * The events that only libraries read, with the fields that every Chromium sends and without which the libraries throw in a
 * listener, where no caller can catch it. All else is left to the libraries, so that a newer Chromium loses no event.
 */
const EVENTS_OF_LIBRARIES = {
  'Audits.issueAdded': v.looseObject({ issue: v.looseObject({ code: text }) }),
  'Page.navigatedWithinDocument': v.looseObject({ frameId: text, url: text }),
  'Page.frameRequestedNavigation': ofFrame,
  'Page.frameStartedLoading': ofFrame,
  'Page.frameStoppedLoading': ofFrame,
  'Page.lifecycleEvent': v.looseObject({ frameId: text, name: text }),
  'Network.requestWillBeSentExtraInfo': v.looseObject({ requestId: text, headers }),
  'Network.requestServedFromCache': ofRequest,
  'Network.webSocketCreated': v.looseObject({ requestId: text, url: text }),
  'Network.webSocketWillSendHandshakeRequest': v.looseObject({
    requestId: text,
    request: v.looseObject({ headers }),
  }),
  'Network.webSocketHandshakeResponseReceived': v.looseObject({
    requestId: text,
    response: v.looseObject({ status: v.number(), statusText: text }),
  }),
  'Network.webSocketFrameSent': frameOfWebSocket,
  'Network.webSocketFrameReceived': frameOfWebSocket,
  'Network.webSocketFrameError': v.looseObject({ requestId: text, errorMessage: text }),
  'Network.webSocketClosed': ofRequest,
};

const ofNavigation = v.looseObject({
  context: text,
  url: text,
  navigation: v.nullish(text),
  timestamp: may(v.number()),
});
const sourceOfScript = v.looseObject({ realm: text, context: v.nullish(text) });

/** The same for the events of WebDriver BiDi. */
const BIDI_EVENTS_OF_LIBRARIES = {
  'browsingContext.contextCreated': v.looseObject({
    context: text,
    url: text,
    userContext: v.nullish(text),
    parent: v.nullish(text),
    children: v.nullish(v.array(v.unknown())),
  }),
  'browsingContext.contextDestroyed': ofContext,
  'browsingContext.historyUpdated': v.looseObject({ context: text, url: text }),
  'browsingContext.navigationStarted': ofNavigation,
  'browsingContext.navigationCommitted': ofNavigation,
  'browsingContext.fragmentNavigated': ofNavigation,
  'browsingContext.navigationFailed': ofNavigation,
  'browsingContext.navigationAborted': ofNavigation,
  'browsingContext.domContentLoaded': ofNavigation,
  'browsingContext.load': ofNavigation,
  'log.entryAdded': v.pipe(
    v.looseObject({
      type: text,
      level: text,
      text: v.nullable(text),
      source: sourceOfScript,
      args: v.nullish(v.array(v.looseObject({ type: text }))),
      stackTrace: v.nullish(stackTrace),
    }),
    v.check(({ type, args }) => type !== 'console' || Array.isArray(args)),
  ),
  'network.beforeRequestSent': ofNetworkRequest,
  'network.fetchError': v.looseObject({ ...ofNetworkRequest.entries, errorText: text }),
  'script.message': v.looseObject({
    channel: text,
    data: v.looseObject({ type: text }),
    source: sourceOfScript,
  }),
  'script.realmCreated': v.pipe(
    v.looseObject({ realm: text, origin: text, type: text, owners: may(v.array(text)) }),
    v.check(({ type, owners }) => type !== 'dedicated-worker' || owners !== undefined),
  ),
  'script.realmDestroyed': v.looseObject({ realm: text }),
};

/** All events whose fields are checked, by their names. */
export const CHECKED: ReadonlyMap<string | undefined, v.GenericSchema> = new Map(
  Object.entries({ ...EVENTS, ...EVENTS_OF_LIBRARIES, ...BIDI_EVENTS_OF_LIBRARIES }),
);

const cookie = v.looseObject({
  name: text,
  value: text,
  domain: text,
  path: text,
  secure: may(v.boolean()),
  sameSite: may(text),
  partitionKey: may(v.unknown()),
});

/** The results of commands that this library reads. */
export const RESULTS = {
  'Browser.getVersion': v.looseObject({ product: may(text), userAgent: may(text) }),
  'Network.getSecurityIsolationStatus': v.object({
    status: v.object({ coep: may(v.object({ value: text })) }),
  }),
  'Network.fetchSchemefulSite': v.object({ schemefulSite: text }),
  'Target.getTargets': v.object({ targetInfos: things(targetInfo) }),
  'Target.createTarget': v.object({ targetId: text }),
  'Target.attachToTarget': v.object({ sessionId: text }),
  'Target.attachToBrowserTarget': v.object({ sessionId: text }),
  'Target.getTargetInfo': v.object({ targetInfo }),
  'Target.getBrowserContexts': v.object({ browserContextIds: things(text) }),
  'Target.createBrowserContext': v.object({ browserContextId: text }),
  'Storage.getStorageKey': v.object({ storageKey: text }),
  'DOM.getFrameOwner': v.object({ backendNodeId: v.number() }),
  'DOM.resolveNode': v.object({ object: v.object({ objectId: may(text) }) }),
  'DOM.describeNode': v.object({ node: v.object({ attributes: may(v.array(text)), frameId: may(text) }) }),
  'Storage.getCookies': v.object({ cookies: v.array(cookie) }),
  'Page.getFrameTree': v.object({ frameTree }),
  'Page.createIsolatedWorld': v.object({ executionContextId: v.number() }),
  'Page.getNavigationHistory': v.object({
    currentIndex: v.number(),
    entries: v.array(v.object({ id: v.number() })),
  }),
  'Page.navigate': v.object({ errorText: may(text), loaderId: may(text) }),
  'Page.captureScreenshot': v.object({ data: text }),
  'Runtime.evaluate': evaluated,
  'Runtime.callFunctionOn': evaluated,
  'Browser.getHistograms': v.object({
    histograms: v.array(
      v.object({ name: text, count, buckets: v.array(v.object({ low: v.number(), count })) }),
    ),
  }),
  'Extensions.loadUnpacked': v.object({ id: text }),
  'Extensions.getExtensions': v.object({ extensions: things(v.object({ id: text })) }),
  'Network.loadNetworkResource': v.object({ resource: v.object({ netErrorName: may(text) }) }),
  'session.new': v.looseObject({}),
  'browser.createUserContext': v.object({ userContext: text }),
  'browser.getClientWindows': v.object({ clientWindows: things(v.object({ clientWindow: text })) }),
  'browser.getUserContexts': v.object({ userContexts: things(v.object({ userContext: text })) }),
  'browsingContext.captureScreenshot': v.object({ data: text }),
  'browsingContext.create': v.object({ context: text }),
  'browsingContext.getTree': v.object({
    contexts: things(
      v.object({
        context: text,
        url: may(text),
        userContext: v.nullish(text),
        clientWindow: v.nullish(text),
        children: may(v.unknown()),
      }),
    ),
  }),
  'goog:cdp.sendCommand': v.object({ result: may(v.unknown()) }),
  'script.evaluate': v.object({ result: may(v.object({ value: may(v.unknown()) })) }),
};

const inBrowserContext = v.looseObject({ browserContextId: may(text) });
const withUrl = v.looseObject({ url: may(v.unknown()) });
const toTarget = v.looseObject({ targetId: text });
const inPartition = v.looseObject({ partition: v.nullish(v.looseObject({ userContext: v.nullish(text) })) });

/** The commands of a library, or of a client of a loopback address, that this library reads. */
export const COMMANDS = {
  'Target.createBrowserContext': v.looseObject({
    proxyServer: may(text),
    proxyBypassList: may(text),
  }),
  'Target.createTarget': v.looseObject({
    url: text,
    browserContextId: may(text),
    newWindow: may(v.unknown()),
  }),
  'Target.disposeBrowserContext': inBrowserContext,
  'Target.attachToTarget': toTarget,
  'Target.setAutoAttach': v.looseObject({
    autoAttach: v.boolean(),
    waitForDebuggerOnStart: v.boolean(),
    filter: may(v.array(v.looseObject({ type: may(text), exclude: may(v.boolean()) }))),
  }),
  'Runtime.runIfWaitingForDebugger': v.object({}),
  'Target.autoAttachRelated': toTarget,
  'Target.getBrowserContexts': v.looseObject({}),
  'Target.getTargets': v.looseObject({}),
  'Browser.setPermission': inBrowserContext,
  'Browser.grantPermissions': inBrowserContext,
  'Browser.resetPermissions': inBrowserContext,
  'Browser.cancelDownload': v.looseObject({ browserContextId: may(text), guid: may(text) }),
  'Storage.getCookies': inBrowserContext,
  'Storage.setCookies': inBrowserContext,
  'Storage.clearCookies': inBrowserContext,
  'Page.navigate': v.looseObject({ url: may(text) }),
  'Browser.setDownloadBehavior': v.object({
    behavior: text,
    downloadPath: may(text),
    browserContextId: may(text),
  }),
  'Emulation.setUserAgentOverride': v.looseObject({ userAgent: may(text), acceptLanguage: may(text) }),
  'Network.setExtraHTTPHeaders': v.looseObject({ headers }),
  'Network.getResponseBody': v.looseObject({ requestId: text }),
  'Network.emulateNetworkConditions': v.looseObject({
    offline: may(v.boolean()),
    latency: may(v.number()),
    downloadThroughput: may(v.number()),
    uploadThroughput: may(v.number()),
  }),
  'Target.exposeDevToolsProtocol': v.looseObject({}),
  'Target.sendMessageToTarget': v.looseObject({}),
  'PWA.install': v.looseObject({}),
  'PWA.changeAppUserSettings': v.looseObject({}),
  'Extensions.loadUnpacked': v.looseObject({}),
  'Extensions.setStorageItems': v.looseObject({}),
  'Extensions.removeStorageItems': v.looseObject({}),
  'Extensions.clearStorageItems': v.looseObject({}),
  'Browser.setContentsSize': v.looseObject({}),
  'Browser.setWindowBounds': v.looseObject({}),
  'browser.setClientWindowState': v.looseObject({}),
  'browsingContext.create': v.looseObject({ type: may(v.unknown()), userContext: v.nullish(text) }),
  'Emulation.addScreen': v.looseObject({}),
  'Emulation.removeScreen': v.looseObject({}),
  'Emulation.setPrimaryScreen': v.looseObject({}),
  'Emulation.updateScreen': v.looseObject({}),
  'Security.setIgnoreCertificateErrors': v.looseObject({ ignore: may(v.unknown()) }),
  'Security.handleCertificateError': v.looseObject({ action: may(v.unknown()) }),
  'session.new': v.looseObject({}),
  'Network.loadNetworkResource': withUrl,
  'Fetch.continueRequest': withUrl,
  'Fetch.continueWithAuth': v.looseObject({}),
  'browsingContext.navigate': withUrl,
  'network.continueRequest': withUrl,
  'network.continueWithAuth': v.looseObject({}),
  'goog:cdp.sendCommand': v.looseObject({ method: may(v.unknown()), params: may(v.looseObject({})) }),
  'permissions.setPermission': v.looseObject({ userContext: v.nullish(text) }),
  'storage.setCookie': inPartition,
  'storage.deleteCookies': inPartition,
  'webExtension.install': v.looseObject({}),
  'browser.createUserContext': v.looseObject({}),
  'browser.getUserContexts': v.looseObject({}),
  'browsingContext.getTree': v.looseObject({}),
  'DOM.setFileInputFiles': v.object({ files: v.array(text) }),
  'input.setFiles': v.object({ files: v.array(text), context: may(text) }),
};
