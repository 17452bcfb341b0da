import { isRecord, parseJson } from '../../shared/json.js';
import type { LiveCommand } from '../pages/messages.js';

type Check = (value: unknown) => boolean;

const isNumber: Check = (value) => Number.isFinite(value);
const isText: Check = (value) => typeof value === 'string';
const oneOf =
  (...allowed: readonly unknown[]): Check =>
  (value) =>
    allowed.includes(value);

const POSITION = { x: isNumber, y: isNumber, modifiers: isNumber };

/** What each command must hold. */
const FIELDS: Readonly<Record<LiveCommand['type'], Readonly<Record<string, Check>>>> = {
  watch: { id: isText },
  mouse: {
    ...POSITION,
    action: oneOf('mousePressed', 'mouseReleased', 'mouseMoved'),
    button: oneOf('none', 'left', 'middle', 'right', 'back', 'forward'),
    buttons: isNumber,
    clickCount: isNumber,
  },
  wheel: { ...POSITION, deltaX: isNumber, deltaY: isNumber },
  key: {
    action: oneOf('keyDown', 'keyUp'),
    key: isText,
    code: isText,
    keyCode: isNumber,
    text: isText,
    location: isNumber,
    repeat: oneOf(true, false),
    modifiers: isNumber,
  },
  text: { text: isText },
  navigate: { url: (value) => isText(value) && URL.canParse(String(value)) },
  history: { by: oneOf(-1, 1) },
  reload: {},
};

/** The command that a message is; nothing when it is none. */
export function readCommand(message: string): LiveCommand | undefined {
  const value = tryParse(message);
  if (!isRecord(value)) return undefined;
  const { type } = value;
  if (typeof type !== 'string' || !Object.hasOwn(FIELDS, type)) return undefined;
  const fields = Object.entries(FIELDS[type as LiveCommand['type']]);
  // Checked field by field above.
  return fields.every(([field, check]) => check(value[field]))
    ? (value as unknown as LiveCommand)
    : undefined;
}

function tryParse(message: string): unknown {
  try {
    return parseJson(message);
  } catch {
    return undefined;
  }
}
