import { isRecord } from '../../shared/json.js';

/** A BiDi message of either direction. */
export type Message = Record<string, unknown>;

/** A command as a client sends it. */
export type Command = Message & { readonly id: number; readonly method: string };

/** The command in a text; nothing when it is none. */
export function readCommand(text: string): Command | undefined {
  const message = parse(text);
  return isRecord(message) && isCommand(message) ? message : undefined;
}

export function success({ id }: Command, result: object): Message {
  return { type: 'success', id, result };
}

/** @param id That of the command; nothing when the message was no command. */
export function failure(id: number | undefined, error: string, message: string): Message {
  return { type: 'error', id: id ?? null, error, message };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isCommand(message: Message): message is Command {
  return (
    Number.isSafeInteger(message['id']) &&
    (message['id'] as number) >= 0 &&
    typeof message['method'] === 'string'
  );
}
