import { isRecord, parseJson } from '../../shared/json.js';

/**
 * The types of objects whose methods a client may call. The server side of Playwright runs on this machine: it has objects that
 * read and write files of this machine, start programs and listen on ports, for a client that runs beside it.
 *
 * `'*'`: all methods, because they act in the browser only. The other types have methods that act on this machine, so that a
 * method that is not in their list is refused, also one of a later version.
 */
const METHODS: Readonly<Record<string, '*' | readonly string[]>> = {
  Root: ['initialize'],
  Browser: words(
    'close newContext newContextForReuse disconnectFromReusedContext newBrowserCDPSession startTracing stopTracing ' +
      'defaultUserAgentForTest',
  ),
  BrowserContext: words(
    'addCookies addInitScript clearCookies clearPermissions close cookies exposeBinding grantPermissions newPage ' +
      'registerSelectorEngine setTestIdAttributeName setExtraHTTPHeaders setGeolocation setHTTPCredentials setOffline ' +
      'setNetworkInterceptionPatterns setWebSocketInterceptionPatterns storageState setStorageState exposeConsoleApi ' +
      'newCDPSession createTempFiles harStart harExport clockFastForward clockInstall clockPauseAt clockResume ' +
      'clockRunFor clockSetFixedTime clockSetSystemTime credentialsInstall credentialsCreate credentialsGet ' +
      'credentialsDelete',
  ),
  Tracing: words(
    'tracingStart tracingStartChunk tracingGroup tracingGroupEnd tracingStopChunk tracingStop harStart harExport',
  ),
  APIRequestContext: words(
    'fetch fetchResponseBody fetchLog addCookies clearCookies cookies storageState disposeAPIResponse dispose',
  ),
  Artifact: words('saveAsStream stream failure cancel delete'),
  Stream: words('read close'),
  WritableStream: words('write close'),
  Page: '*',
  Frame: '*',
  JSHandle: '*',
  ElementHandle: '*',
  Worker: '*',
  Dialog: '*',
  Request: '*',
  Response: '*',
  Route: '*',
  WebSocket: '*',
  WebSocketRoute: '*',
  BindingCall: '*',
  CDPSession: '*',
  Disposable: '*',
};

/** Methods of all objects: which events to send, and what the client waits for. */
const OF_ALL = words('updateSubscription waitForEventInfo __waitInfo__ __abort__');

/** Methods without an answer. */
const NO_ANSWER = words('__waitInfo__ __abort__');

function words(text: string): readonly string[] {
  return text.split(' ');
}

/** The name of a parameter that is a path on this machine. */
const PATH_NAME =
  /^(?:path|dir|directory|folder|file)s?$|(?:Path|Dir|Directory|Folder|File)s?$|^saveStorage$/;

/** Parameters of such a name that are none: the path of a cookie, and the place in the client's source that a trace shows. */
const NO_PATHS: Readonly<Record<string, RegExp>> = {
  clearCookies: /^path$/,
  tracingGroup: /^file$/,
};

type Params = Record<string, unknown>;

/** The message that reaches the server, or the answer to one that does not. */
interface Guarded {
  readonly pass?: string;
  readonly answer?: string;
}

interface Known {
  readonly type: string;
  parent: string;
  readonly children: Set<string>;
}

interface GuardOptions {
  /** Hides the contexts that exist before the client: the browser's own one. */
  readonly hidesOwnContext: boolean;
  /** The URLs to which this machine may send requests of the API for the client. Undefined: all. */
  readonly allowed: RegExp | undefined;
}

/**
 * The one filter of the messages between a client of Playwright's protocol and the server side on this machine: the client gets
 * a browser, not this machine.
 *
 * @see The table of attacks in the tests.
 */
export class MessageGuard {
  readonly #options: GuardOptions;
  /** The objects that the server has announced and not disposed of. */
  readonly #objects = new Map<string, Known>([['', { type: 'Root', parent: '', children: new Set() }]]);
  readonly #hidden = new Set<string>();
  /** The option `baseURL` of the contexts. */
  readonly #baseUrls = new Set<string>();
  /** Ids of the messages that initialize the client. */
  readonly #initializing = new Set<unknown>();
  #isInitialized = false;

  constructor(options: GuardOptions) {
    this.#options = options;
  }

  /** Reads a message of the client. @throws If it is none: the server would end. */
  fromClient(text: string): Guarded {
    const message = parseJson(text);
    if (!isRecord(message)) throw new Error('The message is no object.');
    const { id, guid, method, params = {}, metadata = {} } = message;
    if (typeof guid !== 'string' || typeof method !== 'string' || !isRecord(params) || !isRecord(metadata))
      throw new Error('The message is no call.');
    if (method !== '__abort__' && !['number', 'string'].includes(typeof id))
      throw new Error('The message has no id.');
    if (method === 'initialize' && guid === '') this.#initializing.add(id);
    // Opens the inspector in a browser with a window, and does nothing in one without.
    if (method === 'pause' && this.#typeOf(guid) === 'BrowserContext') return answerTo(id, { result: {} });
    const checked = this.#check(guid, method, params);
    // A client throws if it receives an answer to these.
    if (typeof checked === 'string' && NO_ANSWER.includes(method)) return {};
    if (typeof checked === 'string')
      return answerTo(id, {
        error: {
          error: { name: checked === CLOSED ? 'TargetClosedError' : 'Error', message: checked, stack: '' },
        },
      });
    // A new object: the server may read another field of one that a message names twice. Without the place in the client's source,
    // whose file the server could read.
    const { location: _location, ...rest } = metadata;
    return { pass: JSON.stringify({ id, guid, method, params: checked, metadata: rest }) };
  }

  /** Reads a message of the server. Returns it, or undefined if it is not for the client. */
  fromServer(text: string): string | undefined {
    const head = HEAD.exec(text);
    // A response.
    if (!head) {
      if (!this.#isInitialized && this.#initializing.has(idOfResult(text))) this.#isInitialized = true;
      return text;
    }
    const [, guid = '', method = ''] = head;
    const isHidden = this.#hidden.has(guid);
    if (STRUCTURE.includes(method)) this.#note(guid, method, text);
    if (isHidden) return undefined;
    const names = method === 'context' || method === '__create__' || method === '__adopt__';
    return names && this.#namesHidden(text) ? undefined : text;
  }

  /** Returns the parameters to send, or why the call is refused. */
  #check(guid: string, method: string, params: Params): Params | string {
    const type = this.#typeOf(guid);
    // Some ids can be guessed, before the object is announced.
    if (type === undefined) return CLOSED;
    const allowed = Object.hasOwn(METHODS, type) ? METHODS[type]! : [];
    const isAllowed = allowed === '*' ? !method.startsWith('_') : allowed.includes(method);
    if (!isAllowed && !(OF_ALL.includes(method) && allowed.length > 0)) return refusal(`${type}.${method}`);
    const cleaned = method === '__abort__' ? readAbort(params) : withoutOwnFolders(method, params);
    const path = pathIn(type, method, cleaned);
    if (path !== undefined) return refusal(`${type}.${method} with ${path}`);
    return this.#options.allowed ? this.#limit(method, cleaned, this.#options.allowed) : cleaned;
  }

  /** Requests of the API do not pass the browser, which has the limit of the option `allowedHosts`. */
  #limit(method: string, params: Params, allowed: RegExp): Params | string {
    if (method === 'newContext' || method === 'newContextForReuse') {
      const { proxy, baseURL } = params;
      if (proxy !== undefined) return NO_PROXY;
      if (typeof baseURL === 'string') this.#baseUrls.add(baseURL);
    }
    if (method !== 'fetch') return params;
    const given = String(params['url']);
    // Each of the contexts can be the one that is meant. `http:host` is a path for a base of the same scheme, and a host otherwise.
    const urls = [undefined, ...this.#baseUrls].flatMap((base) =>
      URL.canParse(given, base) ? new URL(given, base).href : [],
    );
    // A redirect could lead to another host: the client receives it instead.
    return urls.length > 0 && urls.every((url) => allowed.test(url))
      ? { ...params, maxRedirects: 0 }
      : NO_HOST;
  }

  #typeOf(guid: string): string | undefined {
    return this.#hidden.has(guid) ? undefined : this.#objects.get(guid)?.type;
  }

  #note(guid: string, method: string, text: string): void {
    if (method === '__dispose__') return this.#dispose(guid);
    const { params } = JSON.parse(text) as { params: { type: string; guid: string } };
    const child = params.guid;
    if (method === '__create__') {
      this.#objects.set(child, { type: params.type, parent: guid, children: new Set() });
      const isBeforeClient = params.type === 'BrowserContext' && !this.#isInitialized;
      if (isBeforeClient && this.#options.hidesOwnContext) this.#hide(child);
    }
    const known = this.#objects.get(child);
    if (!known) return;
    this.#objects.get(known.parent)?.children.delete(child);
    this.#objects.get(guid)?.children.add(child);
    known.parent = guid;
    if (this.#hidden.has(guid)) this.#hide(child);
  }

  #hide(guid: string): void {
    this.#hidden.add(guid);
    this.#objects.get(guid)?.children.forEach((child) => this.#hide(child));
  }

  #dispose(guid: string): void {
    const known = this.#objects.get(guid);
    if (!known) return;
    this.#objects.delete(guid);
    this.#hidden.delete(guid);
    this.#objects.get(known.parent)?.children.delete(guid);
    known.children.forEach((child) => this.#dispose(child));
  }

  #namesHidden(text: string): boolean {
    const { params } = JSON.parse(text) as { params?: { guid?: string; context?: { guid?: string } } };
    const named = params?.context?.guid ?? params?.guid;
    return named !== undefined && this.#hidden.has(named);
  }
}

/** The beginning of an event. */
const HEAD = /^\{"guid":"([^"\\]*)","method":"([^"\\]+)"/;
/** The beginning of a response that is no error. */
const RESULT = /^\{"id":(\d+|"(?:[^"\\]|\\.)*"),"result":/;
/** The events that say which objects there are. */
const STRUCTURE = ['__create__', '__adopt__', '__dispose__'];

/** Reads the id of a response with a result: a number, or a text in newer versions. */
function idOfResult(text: string): unknown {
  const [, id] = RESULT.exec(text) ?? [];
  return id === undefined ? undefined : JSON.parse(id);
}

/** As Playwright's server answers for an object that it does not have. */
const CLOSED = 'Target page, context or browser has been closed';

const NO_HOST = 'The host of this request is not one of allowedHosts.';
const NO_PROXY = 'The option proxy of a context and allowedHosts exclude each other.';

function refusal(what: string): string {
  return `${what} is refused: this address gives a browser, and no files or programs of the machine that serves it.`;
}

function answerTo(id: unknown, response: object): Guarded {
  return { answer: JSON.stringify({ id, ...response }) };
}

/** The only parameters that the server does not check: it throws, where nobody catches it, for a reason that is no text. */
function readAbort({ id, reason }: Params): Params {
  return { id, ...(typeof reason === 'string' && { reason }) };
}

/** A client sends these paths of its own machine, too, and receives the files from the server in any case. */
function withoutOwnFolders(method: string, params: Params): Params {
  const without = (name: string, ...paths: readonly string[]) => {
    const given = params[name];
    if (!isRecord(given)) return params;
    const rest = Object.entries(given).filter(([key]) => !paths.includes(key));
    return { ...params, [name]: Object.fromEntries(rest) };
  };
  if (method === 'newContext' || method === 'newContextForReuse') return without('recordVideo', 'dir');
  if (method === 'harStart') return without('options', 'harPath', 'resourcesDir');
  return params;
}

/** Returns the name of a parameter that is a path on this machine, or becomes one. */
function pathIn(type: string, method: string, params: Params): string | undefined {
  // The parameters of a command of CDP. Those of the network are cookies.
  const isCdp = type === 'CDPSession' && method === 'send';
  const command = isCdp ? String(params['method']) : '';
  if (/^(Network|Storage)\./.test(command)) return undefined;
  if (NESTING.includes(command)) return command;
  const isPath = ([name, value]: readonly [string, unknown]) =>
    value !== undefined && value !== null && PATH_NAME.test(name) && !NO_PATHS[method]?.test(name);
  for (const entry of entriesWithin(params)) if (isPath(entry)) return entry[0];
  return nameThatLeaves(type, method, params);
}

/** The fields of an object and of the objects in it, at any depth. Lists hold cookies, headers and values of scripts. */
function* entriesWithin(params: Params): Generator<readonly [string, unknown]> {
  // Takes linear time, and no stack: a client can send one object in another.
  const objects = [params];
  for (let next = objects.pop(); next; next = objects.pop())
    for (const entry of Object.entries(next)) {
      yield entry;
      if (isRecord(entry[1])) objects.push(entry[1]);
    }
}

/** Commands of CDP with a command in them. */
const NESTING = ['Target.sendMessageToTarget', 'Target.exposeDevToolsProtocol'];

/** Returns the name of a parameter that the server appends to a folder, if it leads out of the folder. */
function nameThatLeaves(type: string, method: string, params: Params): string | undefined {
  if (method === 'createTempFiles') {
    const { rootDirName = '', items } = params;
    const names = Array.isArray(items) ? items.map((item: unknown) => isRecord(item) && item['name']) : [];
    return [rootDirName, ...names].every(staysInside) ? undefined : 'a name';
  }
  if (type === 'Tracing' && (method === 'tracingStart' || method === 'tracingStartChunk'))
    return /[/\\]|^\.\.?$/.test(String(params['name'] ?? '')) ? 'name' : undefined;
  return undefined;
}

function staysInside(name: unknown): boolean {
  if (typeof name !== 'string' || /^([/\\]|[a-z]:)|\0/i.test(name)) return false;
  return !name.split(/[/\\]/).includes('..');
}
