import type { CdpClient } from '../wire/cdp-client.js';
import type { ClientKind } from '../wire/client.js';
import type { Answer, Command, Layer, WireEvent } from '../wire/layer.js';
import type { Wire } from '../wire/wire.js';
import type { CommandName, CommandParams, EventName, EventParams, ResultOf } from '../wire/message.js';
import type { Message } from '../wire/forms.js';

/**
 * What a feature does with the messages between an automation library, or another client, and its browser. Only the messages of
 * these names are read.
 */
export interface MessageRules {
  /**
   * Changes a command. Returns the parameters that differ; undefined to leave it as it is; `false` for one that succeeds without the
   * browser. The command waits for a promise, later commands do not; if it throws or rejects, the client receives the error.
   */
  readonly commands?: {
    readonly [Name in CommandName]?: (
      params: CommandParams<Name>,
      sessionId: string | undefined,
    ) => Changed | Promise<object | undefined>;
  };
  /** Returns the result of a command that the browser does not receive, or its error; undefined to send it. */
  readonly answers?: {
    readonly [Name in CommandName]?: (params: CommandParams<Name>) => Promise<object> | undefined;
  };
  /** No client can circumvent `commands` and `refuse`: each command is parsed, which costs time. */
  readonly isLimit?: boolean;
  /** Returns why no client may send a command; undefined if one may. */
  readonly refuse?: (method: string, sessionId: string | undefined) => string | undefined;
  /** Reads the result of a command of the client, who waits for the promise. Returns the fields that differ. */
  readonly results?: {
    readonly [Name in ResultName]?: (
      result: ResultOf<Name>,
      sessionId: string | undefined,
      params: Message['params'],
    ) => void | object | Promise<void | object>;
  };
  /**
   * Reads an event. Returns `false` for an event that no client receives, or the parameters that differ; a promise of either holds it
   * back.
   */
  readonly events?: {
    readonly [Name in EventName]?: (
      params: EventParams<Name>,
      sessionId: string | undefined,
    ) => void | Changed | Promise<Changed>;
  };
  /** Returns further events of the session, which the client receives after an event that another rule has read. */
  readonly followUps?: (
    name: EventName,
    params: EventParams,
    sessionId: string | undefined,
  ) => readonly Message[];
}

/** The parameters of a command that differ; `false` if the browser does not receive it. */
type Changed = object | false | undefined;

type ResultName =
  | 'Extensions.loadUnpacked'
  | 'Page.navigate'
  | 'Target.createBrowserContext'
  | 'Target.createTarget'
  | 'Target.getBrowserContexts'
  | 'Target.getTargets'
  | 'browser.createUserContext'
  | 'session.new';

/** What features of the old kind see of a wire. */
export class MessageFilter {
  readonly cdp: CdpClient;
  readonly #wire: Wire;

  constructor(wire: Wire) {
    this.#wire = wire;
    this.cdp = wire.own;
  }

  add(...rules: readonly MessageRules[]): void {
    this.#wire.shared.stack.add(...rules.map((one) => layerOf(one)));
  }

  hide(targetOrContext: string): void {
    this.#wire.shared.sessions.hide(targetOrContext);
  }
}

type Change = object | false | undefined | void;
type Rule = (...of: unknown[]) => Change | Promise<Change>;
type Rules = Readonly<Record<string, Rule | undefined>>;

/** The layer that does what rules say. @param kind Of the clients to which they apply. Default: all. */
export function layerOf(rules: MessageRules, kind?: ClientKind): Layer {
  const { commands = {}, answers = {}, results = {}, events = {}, refuse, isLimit } = rules;
  const names = new Set([commands, answers, results].flatMap((one) => Object.keys(one)));
  return {
    name: 'rules',
    commands: {
      ...Object.fromEntries([...names].map((name) => [name, commandHandler(rules, name, kind)])),
      ...((isLimit || refuse) && {
        '*': ({ method, sessionId }: Command, next: () => Promise<Answer>) => {
          const reason = refuse?.(method, sessionId);
          if (reason !== undefined) throw new Error(reason);
          return next();
        },
      }),
    },
    events: Object.fromEntries(Object.keys(events).map((name) => [name, eventHandler(rules, name, kind)])),
  };
}

function commandHandler(
  { commands = {}, answers = {}, results = {} }: MessageRules,
  name: string,
  kind: ClientKind | undefined,
) {
  const [answer, rule, read] = [answers, commands, results].map((one) => (one as Rules)[name]);
  return async ({ params, sessionId, client }: Command, next: (changes?: object) => Promise<Answer>) => {
    if (kind !== undefined && client.kind !== kind) return next();
    const answered = answer?.(params);
    if (answered) return (await answered) as object;
    let change = rule?.(params, sessionId);
    // A handler that waits even for a moment lets later commands overtake.
    if (change instanceof Promise) change = await change;
    if (change === false) return {};
    const passed = next(change ?? undefined);
    if (!read) return passed;
    const came = await passed;
    const changed = await read(came.result, sessionId, params);
    return changed ? came.with(changed) : came;
  };
}

function eventHandler({ events = {}, followUps }: MessageRules, name: string, kind: ClientKind | undefined) {
  const rule = (events as Rules)[name];
  return async (event: WireEvent, next: (changes?: object) => void | Promise<void>) => {
    const { params, sessionId, client } = event;
    if (kind !== undefined && client.kind !== kind) return next();
    let change = rule?.(params, sessionId);
    if (change instanceof Promise) change = await change;
    if (change === false) return;
    await next(change ?? undefined);
    for (const one of followUps?.(name as EventName, params, sessionId) ?? [])
      event.emit(one.method!, one.params ?? {});
  };
}
