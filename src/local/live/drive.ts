import type { KeyCommand, LiveCommand, MouseCommand, WheelCommand } from '../pages/messages.js';

/** Sends a CDP command to the page that is watched. */
export type Ask = (method: string, params?: object) => Promise<Record<string, unknown>>;

/** Does in the page what the person did in the live view. */
export async function drive(ask: Ask, command: Exclude<LiveCommand, { type: 'watch' }>): Promise<void> {
  switch (command.type) {
    case 'mouse':
      return void (await ask('Input.dispatchMouseEvent', mouseParams(command)));
    case 'wheel':
      return void (await ask('Input.dispatchMouseEvent', wheelParams(command)));
    case 'key':
      return void (await ask('Input.dispatchKeyEvent', keyParams(command)));
    case 'text':
      return void (await ask('Input.insertText', { text: command.text }));
    case 'navigate':
      return void (await ask('Page.navigate', { url: command.url }));
    case 'reload':
      return void (await ask('Page.reload'));
    case 'history':
      return await goBy(ask, command.by);
  }
}

function mouseParams({ action, x, y, button, buttons, clickCount, modifiers }: MouseCommand): object {
  return { type: action, x, y, button, buttons, clickCount, modifiers };
}

function wheelParams({ x, y, deltaX, deltaY, modifiers }: WheelCommand): object {
  return { type: 'mouseWheel', x, y, deltaX, deltaY, modifiers };
}

/** A key down that types nothing is a "raw" one: with `keyDown`, Chromium waits for the character. */
function keyParams({ action, text, keyCode, ...key }: KeyCommand): object {
  return {
    type: action === 'keyDown' && text === '' ? 'rawKeyDown' : action,
    key: key.key,
    code: key.code,
    windowsVirtualKeyCode: keyCode,
    location: key.location,
    modifiers: key.modifiers,
    autoRepeat: key.repeat,
    isKeypad: key.location === KEYPAD,
    ...(action === 'keyDown' && text !== '' && { text }),
  };
}

/** `KeyboardEvent.DOM_KEY_LOCATION_NUMPAD` */
const KEYPAD = 3;

async function goBy(ask: Ask, by: number): Promise<void> {
  const { currentIndex, entries } = await ask('Page.getNavigationHistory');
  const entry = (entries as { id: number }[])[Number(currentIndex) + by];
  if (entry) await ask('Page.navigateToHistoryEntry', { entryId: entry.id });
}
