import * as v from 'valibot';
import { jsonOf } from '../shared/json.js';
import { isPageUrl } from '../shared/urls.js';
import type { CdpSession } from '../wire/cdp-client.js';

const number = v.pipe(v.number(), v.finite());

/** Alt 1, Control 2, Meta 4, Shift 8. */
const modifiers = number;

/** In CSS pixels of the page. */
const position = { x: number, y: number };

const mouse = v.object({
  type: v.literal('mouse'),
  action: v.picklist(['mousePressed', 'mouseReleased', 'mouseMoved']),
  ...position,
  button: v.picklist(['none', 'left', 'middle', 'right', 'back', 'forward']),
  /** The pressed buttons, as in `MouseEvent.buttons`. */
  buttons: number,
  clickCount: number,
  modifiers,
});

const wheel = v.object({
  type: v.literal('wheel'),
  ...position,
  deltaX: number,
  deltaY: number,
  modifiers,
});

const key = v.object({
  type: v.literal('key'),
  action: v.picklist(['keyDown', 'keyUp']),
  key: v.string(),
  code: v.string(),
  keyCode: number,
  /** The text that the key types, or an empty string. */
  text: v.string(),
  location: number,
  repeat: v.boolean(),
  modifiers,
});

const command = v.variant('type', [
  /** Shows another tab. The only command that a read-only viewer may send. */
  v.object({ type: v.literal('watch'), id: v.string() }),
  mouse,
  wheel,
  key,
  v.object({ type: v.literal('text'), text: v.string() }),
  v.object({
    type: v.literal('navigate'),
    url: v.pipe(v.string(), v.check(isPageUrl)),
  }),
  v.object({ type: v.literal('history'), by: v.picklist([-1, 1]) }),
  v.object({ type: v.literal('reload') }),
]);

/** A message from the live view page to the server. */
export type LiveCommand = v.InferOutput<typeof command>;
export type MouseCommand = v.InferOutput<typeof mouse>;
type KeyCommand = v.InferOutput<typeof key>;

/** Parses and checks a message. @returns undefined if it is not a valid command. */
export function readLiveCommand(message: string): LiveCommand | undefined {
  const result = v.safeParse(command, jsonOf(message));
  return result.success ? result.output : undefined;
}

/**
 * The most commands that the browser has not answered; above it, a new command of this kind is dropped. A page that does not
 * respond, or has an open dialog, answers no input, and a command such as reload must not wait for the page.
 */
const MOST_UNANSWERED = { move: 32, input: 256, other: 288 };

/**
 * Returns a function that performs the commands of one viewer, unless too many are unanswered.
 *
 * @param perform May reject, for example for a key press in a page that has just closed.
 */
export function withLimits(perform: (command: LiveCommand) => Promise<void>): (command: LiveCommand) => void {
  let unanswered = 0;
  return (command) => {
    if (unanswered >= MOST_UNANSWERED[kindOf(command)]) return;
    unanswered++;
    const onEnd = () => void unanswered--;
    perform(command).then(onEnd, onEnd);
  };
}

/** @returns `other` if the command is no input of a mouse or a keyboard. */
export function kindOf(command: LiveCommand): keyof typeof MOST_UNANSWERED {
  if (command.type === 'mouse' && command.action === 'mouseMoved') return 'move';
  return ['mouse', 'wheel', 'key', 'text'].includes(command.type) ? 'input' : 'other';
}

/** Performs an action of the viewer in the page. */
export async function performCommand(
  session: CdpSession,
  action: Exclude<LiveCommand, { type: 'watch' }>,
): Promise<void> {
  switch (action.type) {
    case 'mouse': {
      const { action: type, ...mouse } = action;
      return void (await session.ask('Input.dispatchMouseEvent', { ...mouse, type }));
    }
    case 'wheel':
      return void (await session.ask('Input.dispatchMouseEvent', { ...action, type: 'mouseWheel' }));
    case 'key':
      return void (await session.ask('Input.dispatchKeyEvent', keyParams(action)));
    case 'text':
      return void (await session.ask('Input.insertText', { text: action.text }));
    case 'navigate':
      return void (await session.ask('Page.navigate', { url: action.url }));
    case 'reload':
      return void (await session.ask('Page.reload'));
    case 'history':
      return await goBy(session, action.by);
  }
}

/** `KeyboardEvent.DOM_KEY_LOCATION_NUMPAD` */
const KEYPAD = 3;

/** Keys without text need `rawKeyDown`: after `keyDown`, Chromium waits for a character. */
function keyParams({ action, text, keyCode, repeat, ...key }: KeyCommand): object {
  return {
    ...key,
    type: action === 'keyDown' && text === '' ? 'rawKeyDown' : action,
    windowsVirtualKeyCode: keyCode,
    autoRepeat: repeat,
    isKeypad: key.location === KEYPAD,
    ...(action === 'keyDown' && text !== '' && { text }),
  };
}

async function goBy(session: CdpSession, by: number): Promise<void> {
  const { currentIndex, entries } = await session.ask('Page.getNavigationHistory');
  const entry = entries[currentIndex + by];
  if (entry) await session.ask('Page.navigateToHistoryEntry', { entryId: entry.id });
}
