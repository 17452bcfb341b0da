import { HISTOGRAMS } from '../support/histograms.js';
import type { SimulatedSocket } from './simulated-socket.js';
import type { World } from './world.js';

/** A command of the Chrome DevTools Protocol. */
export interface Command {
  id: number;
  method: string;
  params?: Record<string, string>;
  sessionId?: string;
}

interface Target {
  type: 'page' | 'service_worker';
  context: string | undefined;
  /** Number of the call that uses the page. */
  usedBy: number | undefined;
}

const DATA = ['storage', 'cookies', 'cache', 'permissions'] as const;

/** A browser in memory: the pages, contexts and data that a lease can leave there. */
export class SimulatedBrowser {
  /** Open WebSockets. */
  readonly sockets = new Set<SimulatedSocket>();
  /** A page that prevents connecting until it is closed. */
  unresponsive: string | undefined;
  /** The data of the browser's own context was cleared: the logins of its profile are lost. */
  isCleared = false;
  readonly #world: World;
  readonly #targets = new Map<string, Target>();
  /** Contexts and data, with the number of the call that they come from. */
  readonly #contexts = new Map<string, number>();
  readonly #data = new Map<string, number>();
  #ids = 0;

  constructor(world: World) {
    this.#world = world;
    this.#open({ usedBy: undefined });
  }

  /** What a call left. */
  tracesOf(call: number): string[] {
    const targets = [...this.#targets].filter(([, { usedBy }]) => usedBy === call);
    const others = [...this.#contexts, ...this.#data].filter(([, by]) => by === call);
    return [...targets.map(([id, { type }]) => `${type} ${id}`), ...others.map(([name]) => name)];
  }

  /** A callback uses a page of the browser's own context, or of a context of its own. */
  use(call: number, choice: 'default' | 'new'): void {
    if (choice === 'new') {
      const context = `context-${++this.#ids}`;
      this.#contexts.set(context, call);
      this.#open({ usedBy: call, context });
      return;
    }
    this.#open({ usedBy: call });
    for (const name of DATA) this.#data.set(name, call);
    if (this.#world.strikes('page: starts a worker'))
      this.#targets.set(`worker-${++this.#ids}`, {
        type: 'service_worker',
        context: undefined,
        usedBy: call,
      });
  }

  /** Whether a target runs. */
  has(id: string): boolean {
    return this.#targets.has(id);
  }

  /** A page of the browser stops to respond. */
  freeze(): void {
    this.unresponsive = [...this.#targets].find(([, { type }]) => type === 'page')?.[0] ?? this.#open({});
  }

  /** Returns the result of a command, or an error. Undefined: the browser does not answer. */
  execute({ method, params = {}, sessionId }: Command): object | undefined {
    switch (method) {
      case 'Target.getTargets':
        return { result: { targetInfos: [...this.#targets].map(([id, target]) => show(id, target)) } };
      case 'Target.getBrowserContexts':
        return { result: { browserContextIds: [...this.#contexts.keys()] } };
      case 'Target.disposeBrowserContext':
        this.#contexts.delete(params['browserContextId']!);
        for (const [id, { context }] of this.#targets)
          if (context === params['browserContextId']) this.#targets.delete(id);
        return { result: {} };
      case 'Target.createTarget':
        return { result: { targetId: this.#open({}) } };
      case 'Target.closeTarget':
        return this.#close(params['targetId']!);
      case 'Target.attachToTarget':
        return this.#targets.has(params['targetId']!)
          ? { result: { sessionId: params['targetId'] } }
          : { error: { message: 'No target with given id found' } };
      case 'Runtime.evaluate':
        return sessionId === this.unresponsive ? undefined : { result: { result: {} } };
      case 'Storage.clearDataForOrigin':
        this.#clear('cookies', sessionId);
        return this.#clear('storage', sessionId);
      case 'Storage.getCookies':
        return { result: { cookies: this.#data.has('cookies') ? [{ name: 'login' }] : [] } };
      case 'Browser.getHistograms':
        return { result: { histograms: HISTOGRAMS } };
      case 'Extensions.getExtensions':
        return { result: { extensions: [] } };
      case 'Network.clearBrowserCache':
        return this.#clear('cache', sessionId);
      case 'Browser.resetPermissions':
        return this.#clear('permissions');
      default:
        return { error: { message: `'${method}' wasn't found` } };
    }
  }

  #open({ usedBy, context }: Partial<Target>): string {
    const id = `page-${++this.#ids}`;
    this.#targets.set(id, { type: 'page', context, usedBy });
    return id;
  }

  #close(id: string): object {
    const page = this.#targets.get(id);
    if (!page) return { error: { message: 'No target with given id found' } };
    if (page.type === 'service_worker' && this.#world.strikes('browser: worker survives'))
      return { result: { success: true } };
    this.#targets.delete(id);
    if (this.unresponsive === id) this.unresponsive = undefined;
    if (page.usedBy !== undefined && this.#world.strikes('browser: closed page opens another one'))
      this.#open(page);
    return { result: { success: true } };
  }

  #clear(name: (typeof DATA)[number], sessionId?: string): object {
    if (sessionId !== undefined && !this.#targets.has(sessionId))
      return { error: { message: 'Session with given id not found.' } };
    this.#data.delete(name);
    this.isCleared = true;
    return { result: {} };
  }
}

function show(targetId: string, { type, context: browserContextId = 'own' }: Target): object {
  return { targetId, type, browserContextId, url: 'about:blank' };
}
