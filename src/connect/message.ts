import * as v from 'valibot';
import { isRecord, jsonOf, parseJson } from '../shared/json.js';
import { partOf, type Frame } from './wire.js';

/** A name from outside that becomes part of a path. Chromium's are UUIDs. */
const guid = v.pipe(v.string(), v.regex(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i));
const text = v.string();
/** Playwright gives the connection itself the empty one. */
const idOfSession = v.pipe(v.string(), v.nonEmpty());
const count = v.pipe(v.number(), v.minValue(0));
const may = <Field extends v.GenericSchema>(field: Field) => v.optional(field);

const targetInfo = v.looseObject({
  targetId: text,
  type: text,
  url: text,
  browserContextId: may(text),
  openerId: may(text),
});

export interface FrameTree {
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
    // Of a page that could not be loaded.
    unreachableUrl: may(text),
  }),
});

const evaluated = v.object({
  result: v.object({ value: may(v.unknown()), objectId: may(text) }),
  exceptionDetails: may(v.object({ exception: may(v.object({ description: may(text) })) })),
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

const ofRequest = v.looseObject({ requestId: text });

/** The events of a browser that this library reads, with the fields that it reads. */
const EVENTS = {
  'Browser.downloadWillBegin': v.object({ guid, url: text, suggestedFilename: text, frameId: may(text) }),
  'Browser.downloadProgress': v.object({
    guid,
    state: text,
    receivedBytes: may(v.number()),
    totalBytes: may(v.number()),
    filePath: may(text),
  }),
  'Page.downloadWillBegin': v.object({ guid }),
  'Target.attachedToTarget': v.object({
    sessionId: idOfSession,
    targetInfo,
    waitingForDebugger: may(v.boolean()),
  }),
  'Target.detachedFromTarget': v.object({ sessionId: may(idOfSession) }),
  'Target.targetCreated': v.object({ targetInfo }),
  'Target.targetInfoChanged': v.object({ targetInfo }),
  'Log.entryAdded': logEntry,
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
    request: v.object({
      url: text,
      // Any, also of a client that changes it: the browser waits for an answer to each request.
      method: text,
      headers: v.record(text, text),
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
  'Network.responseReceived': v.looseObject({ requestId: text, response }),
  'Network.loadingFinished': ofRequest,
  'Network.loadingFailed': v.looseObject({ requestId: text, errorText: text }),
  'browsingContext.downloadWillBegin': v.looseObject({}),
};

const ofFrame = v.looseObject({ frameId: text });
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
  'Page.frameAttached': v.looseObject({ frameId: text, parentFrameId: text }),
  'Page.frameDetached': ofFrame,
  'Page.navigatedWithinDocument': v.looseObject({ frameId: text, url: text }),
  'Page.frameRequestedNavigation': ofFrame,
  'Page.frameStartedLoading': ofFrame,
  'Page.frameStoppedLoading': ofFrame,
  'Page.lifecycleEvent': v.looseObject({ frameId: text, name: text }),
  'Page.javascriptDialogOpening': v.looseObject({ message: text, type: text, defaultPrompt: may(text) }),
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
  'Target.targetDestroyed': v.looseObject({ targetId: text }),
  'Fetch.authRequired': v.looseObject({
    requestId: text,
    request,
    authChallenge: v.looseObject({ origin: text }),
  }),
  'Network.requestWillBeSentExtraInfo': v.looseObject({ requestId: text, headers }),
  'Network.requestServedFromCache': ofRequest,
  'Network.responseReceivedExtraInfo': v.looseObject({ requestId: text, headers }),
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

const ofContext = v.looseObject({ context: text });
const ofNavigation = v.looseObject({
  context: text,
  url: text,
  navigation: v.nullish(text),
  timestamp: may(v.number()),
});
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
  'browsingContext.userPromptOpened': v.looseObject({ context: text, type: text, message: text }),
  'browsingContext.userPromptClosed': ofContext,
  'input.fileDialogOpened': ofContext,
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
  'network.authRequired': ofNetworkRequest,
  'network.beforeRequestSent': ofNetworkRequest,
  'network.fetchError': v.looseObject({ ...ofNetworkRequest.entries, errorText: text }),
  'network.responseCompleted': ofNetworkResponse,
  'network.responseStarted': ofNetworkResponse,
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

const CHECKED: Readonly<Record<string, v.GenericSchema>> = {
  ...EVENTS,
  ...EVENTS_OF_LIBRARIES,
  ...BIDI_EVENTS_OF_LIBRARIES,
};

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
const RESULTS = {
  'Target.getTargets': v.object({ targetInfos: v.array(targetInfo) }),
  'Target.createTarget': v.object({ targetId: text }),
  'Target.attachToTarget': v.object({ sessionId: text }),
  'Target.attachToBrowserTarget': v.object({ sessionId: text }),
  'Target.getTargetInfo': v.object({ targetInfo }),
  'Target.getBrowserContexts': v.object({ browserContextIds: v.array(text) }),
  'Target.createBrowserContext': v.object({ browserContextId: text }),
  'Storage.getCookies': v.object({ cookies: v.array(cookie) }),
  'Page.getFrameTree': v.object({ frameTree }),
  'Runtime.evaluate': evaluated,
  'Runtime.callFunctionOn': evaluated,
  'Browser.getHistograms': v.object({
    histograms: v.array(
      v.object({ name: text, count, buckets: v.array(v.object({ low: v.number(), count })) }),
    ),
  }),
  'Page.addScriptToEvaluateOnNewDocument': v.object({ identifier: text }),
  'Network.loadNetworkResource': v.object({ resource: v.object({ netErrorName: may(text) }) }),
  'session.new': v.looseObject({}),
  'browser.createUserContext': v.object({ userContext: text }),
  'browser.getClientWindows': v.object({ clientWindows: v.array(v.object({ clientWindow: text })) }),
  'browser.getUserContexts': v.object({ userContexts: v.array(v.object({ userContext: text })) }),
  'browsingContext.create': v.object({ context: text }),
  'browsingContext.getTree': v.object({
    contexts: v.array(
      v.object({
        context: text,
        url: may(text),
        userContext: v.nullish(text),
        clientWindow: v.nullish(text),
      }),
    ),
  }),
  'goog:cdp.sendCommand': v.object({ result: may(v.unknown()) }),
  'script.evaluate': v.object({ result: may(v.object({ value: may(v.unknown()) })) }),
};

const inBrowserContext = v.looseObject({ browserContextId: may(text) });
const toTarget = v.looseObject({ targetId: text });
const inPartition = v.looseObject({ partition: v.nullish(v.looseObject({ userContext: v.nullish(text) })) });

/** The commands of a library, or of a client of a loopback address, that this library reads. */
const COMMANDS = {
  'Target.createBrowserContext': v.looseObject({
    proxyServer: may(text),
    proxyBypassList: may(text),
  }),
  'Target.createTarget': v.looseObject({ url: text, browserContextId: may(text) }),
  'Target.disposeBrowserContext': inBrowserContext,
  'Target.attachToTarget': toTarget,
  'Target.setAutoAttach': v.looseObject({
    autoAttach: v.boolean(),
    waitForDebuggerOnStart: v.boolean(),
    filter: may(v.array(v.looseObject({ type: may(text), exclude: may(v.boolean()) }))),
  }),
  'Runtime.runIfWaitingForDebugger': v.object({}),
  'Target.autoAttachRelated': toTarget,
  'Browser.setPermission': inBrowserContext,
  'Browser.grantPermissions': inBrowserContext,
  'Browser.resetPermissions': inBrowserContext,
  'Browser.cancelDownload': v.looseObject({ browserContextId: may(text), guid: may(text) }),
  'Storage.getCookies': inBrowserContext,
  'Storage.setCookies': inBrowserContext,
  'Storage.clearCookies': inBrowserContext,
  'Page.navigate': v.looseObject({ url: text }),
  'Page.createIsolatedWorld': v.looseObject({ worldName: may(text) }),
  'Page.addScriptToEvaluateOnNewDocument': v.looseObject({ source: text, worldName: may(text) }),
  'Page.removeScriptToEvaluateOnNewDocument': v.looseObject({ identifier: text }),
  'Browser.setDownloadBehavior': v.object({
    behavior: text,
    downloadPath: may(text),
    browserContextId: may(text),
  }),
  'Emulation.setUserAgentOverride': v.looseObject({ acceptLanguage: may(text) }),
  'Network.setExtraHTTPHeaders': v.looseObject({ headers }),
  'Network.getResponseBody': v.looseObject({ requestId: text }),
  'Network.emulateNetworkConditions': v.looseObject({
    offline: may(v.boolean()),
    latency: may(v.number()),
    downloadThroughput: may(v.number()),
    uploadThroughput: may(v.number()),
  }),
  'permissions.setPermission': v.looseObject({ userContext: v.nullish(text) }),
  'storage.setCookie': inPartition,
  'storage.deleteCookies': inPartition,
  'webExtension.install': v.looseObject({}),
  'DOM.setFileInputFiles': v.object({ files: v.array(text) }),
  'input.setFiles': v.object({ files: v.array(text), context: may(text) }),
};

type Read<Table extends Record<string, v.GenericSchema>, Name> = Name extends keyof Table
  ? v.InferOutput<Table[Name]>
  : unknown;

export type EventName = keyof typeof EVENTS;
export type EventParams<Name extends EventName = EventName> = Read<typeof EVENTS, Name>;
/** `unknown` for a command whose result nobody reads. */
export type ResultOf<Method extends string> = Read<typeof RESULTS, Method>;
export type CommandName = keyof typeof COMMANDS;
export type CommandParams<Name extends CommandName> = Read<typeof COMMANDS, Name>;

/** An event `error` would make Node's emitters throw. */
const WITH_DOMAIN = /^[\w:]+\.[\w.:]+$/;

/** The parts of every message. What a peer sends is checked here, and nowhere else. */
const envelope = v.object({
  // WebDriver BiDi has errors of messages that have no id.
  id: may(
    v.pipe(
      v.nullable(v.number()),
      v.transform((id) => id ?? undefined),
    ),
  ),
  method: may(v.pipe(text, v.regex(WITH_DOMAIN))),
  sessionId: may(text),
  params: may(v.custom<Record<string, unknown>>(isRecord)),
  result: may(v.unknown()),
  error: may(v.unknown()),
});

/** A command, a response or an event of CDP or WebDriver BiDi. */
export type Message = v.InferOutput<typeof envelope>;

/** A message, a result or an event that is not what the protocol says. */
export class MisfitError extends Error {}

/** @throws MisfitError; SyntaxError if the message is not JSON. */
export function readMessage(data: string | Frame): Message {
  const paused = pausedWithoutBody(data);
  const message = read(envelope, parseJson(paused?.text ?? String(data)), 'message');
  const { request } = (paused && message.params) ?? {};
  if (isRecord(request)) Object.assign(request, { postDataEntries: paused!.parts() });
  return message;
}

/** Which command, response or event a message is. */
export interface Envelope extends Pick<Message, 'id' | 'method' | 'sessionId'> {
  /** The session that has ended. */
  readonly detached?: string | undefined;
  /** What begins with this event, and can't begin again unless it ends. */
  readonly begins?: string | undefined;
  /** What ends with it; with all parts if it ends with a space. */
  readonly ends?: string | undefined;
  /** A response for a session that the browser no longer has. Chromium omits the id of the session. */
  readonly isOfNoSession?: boolean;
  /** An event without what the protocol says: a library would throw where nobody can catch it. */
  readonly isMisfit?: boolean;
}

const NO_SESSION = -32_001;

/**
 * Reads what a message is. The whole message is parsed: what stands at its beginning can be replaced at its end.
 *
 * @returns undefined for what is neither a response nor an event: libraries throw an uncaught exception then.
 * @throws MisfitError if the parts of a message are not what the protocol says; SyntaxError if it is not JSON.
 */
export function readEnvelope(data: string | Frame): Envelope | undefined {
  // Names and ids have no characters beyond ASCII, and the rest is not read.
  const message: unknown = JSON.parse(
    withoutContent(data) ?? pausedWithoutBody(data)?.text ?? partOf(data, 0),
  );
  if (!isRecord(message)) throw misfit('message', 'value');
  const { method, params, type, error } = message;
  // A service can send null for what a message does not have.
  const id = message['id'] ?? undefined;
  const sessionId = message['sessionId'] ?? undefined;
  if (id !== undefined && typeof id !== 'number') throw misfit('message', 'id');
  if (method !== undefined && !(typeof method === 'string' && WITH_DOMAIN.test(method)))
    throw misfit('message', 'method');
  if (sessionId !== undefined && typeof sessionId !== 'string') throw misfit('message', 'sessionId');
  if (params !== undefined && !isRecord(params)) throw misfit('message', 'params');
  // WebDriver BiDi has types of messages, and errors without an id.
  if (type === 'event' && (method === undefined || params === undefined)) return undefined;
  if (id === undefined && method === undefined && (type !== 'error' || error === undefined)) return undefined;
  const ended = method === 'Target.detachedFromTarget' ? params?.['sessionId'] : undefined;
  return {
    id,
    method,
    sessionId,
    detached: typeof ended === 'string' ? ended : undefined,
    ...lifeOf(method, params, sessionId),
    isOfNoSession: isRecord(error) && error['code'] === NO_SESSION,
    isMisfit: isChecked(method) && !v.is(CHECKED[method]!, params),
  };
}

/** What begins or ends with an event: a session of the connection, which begins once, or a frame of a session. */
function lifeOf(
  method: string | undefined,
  params: Readonly<Record<string, unknown>> = {},
  session = '',
): Pick<Envelope, 'begins' | 'ends'> {
  const frames = `frame ${session} `;
  const named = (field: string) => JSON.stringify(params[field]);
  switch (method) {
    // No session has the id of an earlier one.
    case 'Target.attachedToTarget':
      return { begins: `session ${named('sessionId')}` };
    case 'Page.frameAttached':
      return { begins: `${frames}${named('frameId')}` };
    case 'Page.frameDetached':
      return { ends: `${frames}${named('frameId')}` };
    // The frames of the document before it end without an event.
    case 'Page.frameNavigated':
      return recordIn(params['frame'])['parentId'] === undefined ? { ends: frames } : {};
    default:
      return {};
  }
}

function recordIn(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

/** Size of a message, in bytes, from which it costs less to search for a second id than to parse it. */
const LARGE = 64 * 1024;
const LONGEST_MARGIN = 200;
const BEGINNING = /^\{(?:"type":"\w+",)?(?:"id":\d+,"result"|"method":"[\w.]+","params"):\{/;
const END = /\}(?:,"sessionId":"[\w-]+")?\}\s*$/;
/** What a beginning could be replaced with, also escaped. */
const NAMES = ['\\u', '"id"', '"method"', '"sessionId"', '"params"', '"error"', '"type"'];

/** Returns a large message without its content, for example a screenshot. Undefined if the content may replace the beginning. */
function withoutContent(data: string | Frame): string | undefined {
  if (!(data instanceof Buffer) || data.length < LARGE) return undefined;
  const beginning = BEGINNING.exec(partOf(data, 0, LONGEST_MARGIN))?.[0];
  const end = END.exec(partOf(data, -LONGEST_MARGIN))?.[0];
  if (beginning === undefined || end === undefined || isChecked(shownMethod(beginning))) return undefined;
  const content = data.subarray(beginning.length, data.length - end.length);
  return NAMES.some((name) => content.includes(name)) ? undefined : `${beginning}${end}`;
}

/** Where a body as a text begins, and where its parts follow. No text in JSON contains these: its quotes are escaped. */
const BODY = '"postData":"';
const PARTS = '","hasPostData":true,"postDataEntries":[';
const PART = '{"bytes":"';
/** Characters of base64 that are decoded at once: four are three bytes. */
const STEP = 4 * 256 * 1024;

/**
 * Returns a paused request without its body, and the parts of the body. The browser sends a body twice, as a text and in base64, and both
 * as texts of this process would be several times as large. Undefined for other messages, and another order of their fields.
 */
function pausedWithoutBody(data: string | Frame): { text: string; parts(): object[] } | undefined {
  if (!(data instanceof Buffer) || data.length < LARGE) return undefined;
  if (shownMethod(data) !== 'Fetch.requestPaused') return undefined;
  const end = data.indexOf(PARTS);
  const start = end === -1 ? -1 : data.lastIndexOf(BODY, end);
  if (start === -1) return undefined;
  const ranges: (readonly [from: number, to: number] | undefined)[] = [];
  let at = end + PARTS.length;
  while (data[at] === '{'.charCodeAt(0)) {
    const from = at + PART.length;
    const hasBytes = data.toString('latin1', at, from) === PART;
    const to = hasBytes ? data.indexOf('"', from) : at;
    if (to === -1) return undefined;
    ranges.push(hasBytes ? [from, to] : undefined);
    // The end of the object, and a comma.
    at = to + 2;
    if (data[at] === ','.charCodeAt(0)) at++;
  }
  if (data[at] !== ']'.charCodeAt(0)) return undefined;
  const text = `${data.toString('utf8', 0, start + BODY.length)}","hasPostData":true${data.toString('utf8', at + 1)}`;
  return { text, parts: () => ranges.map((range) => (range ? { bytes: fromBase64(data, ...range) } : {})) };
}

function fromBase64(data: Buffer, from: number, to: number): Buffer {
  const bytes = Buffer.allocUnsafe(Math.ceil((3 * (to - from)) / 4));
  let size = 0;
  for (let at = from; at < to; at += STEP)
    size += bytes.write(data.toString('latin1', at, Math.min(at + STEP, to)), size, 'base64');
  return bytes.subarray(0, size);
}

const METHOD = /"method":\s*"([\w.]+)"/;
/** Longest beginning of a command in which its method is, in bytes. */
const LONGEST_HEAD = 200;
/** Reads the method in the beginning of a message, where the known libraries and browsers write it. */
export function shownMethod(data: string | Frame): string | undefined {
  return METHOD.exec(partOf(data, 0, LONGEST_HEAD))?.[1];
}

function isChecked(name: string | undefined): name is string {
  return name !== undefined && Object.hasOwn(CHECKED, name);
}

/** Whether this library reads an event. */
export function isRead(name: string | undefined): name is EventName {
  return name !== undefined && Object.hasOwn(EVENTS, name);
}

/** @throws MisfitError */
export function readEvent<Name extends EventName>(name: Name, params: unknown): EventParams<Name> {
  return read(EVENTS[name], params, `event ${name}`) as EventParams<Name>;
}

/** @throws MisfitError */
export function readResult<Method extends string>(method: Method, result: unknown): ResultOf<Method> {
  const schema = Object.hasOwn(RESULTS, method) ? RESULTS[method as keyof typeof RESULTS] : v.unknown();
  return read(schema, result, `result of ${method}`) as ResultOf<Method>;
}

/** @throws MisfitError */
export function readCommand<Name extends CommandName>(name: Name, params: unknown): CommandParams<Name> {
  return read(COMMANDS[name], params, `command ${name}`) as CommandParams<Name>;
}

function read<Schema extends v.GenericSchema>(
  schema: Schema,
  value: unknown,
  what: string,
): v.InferOutput<Schema> {
  const { success, output, issues } = v.safeParse(schema, value, { abortEarly: true });
  if (success) return output;
  // The value itself can be anything, also a secret.
  const place = v.getDotPath(issues[0]) ?? 'value';
  throw misfit(what, place);
}

function misfit(what: string, place: string): MisfitError {
  return new MisfitError(`The browser sent a ${what} that can not be read: ${place} is not valid.`);
}
