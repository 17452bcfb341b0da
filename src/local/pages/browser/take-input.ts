import type { LiveCommand, MouseCommand } from '../messages.js';
import { byId } from './dom.js';
import type { LiveScreen } from './live-screen.js';

type Send = (command: LiveCommand) => void;

const BUTTONS = ['left', 'middle', 'right', 'back', 'forward'] as const;

/** A line of text, for wheels that count in lines instead of pixels. */
const LINE = 18;

/** Sends what a person does on the picture of the page to the page. */
export function takeInput(screen: LiveScreen, send: Send): void {
  const canvas = byId('screen', HTMLCanvasElement);
  const keyboard = byId('keyboard', HTMLTextAreaElement);
  keyboard.hidden = false;
  canvas.addEventListener('contextmenu', (event) => event.preventDefault());
  // A press would take the focus from the keyboard again.
  canvas.addEventListener('mousedown', (event) => event.preventDefault());
  canvas.addEventListener('pointerdown', () => keyboard.focus());
  takeMouse(canvas, screen, send);
  takeWheel(canvas, screen, send);
  takeKeys(keyboard, send);
}

function takeMouse(canvas: HTMLCanvasElement, screen: LiveScreen, send: Send): void {
  const pass = (event: PointerEvent, action: MouseCommand['action'], clickCount: number): void => {
    const button = BUTTONS[event.button] ?? 'none';
    const { buttons } = event;
    const modifiers = modifiersOf(event);
    send({ type: 'mouse', action, ...screen.positionOf(event), button, buttons, clickCount, modifiers });
  };
  const clicks = new ClickCounter();
  canvas.addEventListener('pointerdown', (event) => {
    // A drag that leaves the canvas ends in it all the same.
    canvas.setPointerCapture(event.pointerId);
    pass(event, 'mousePressed', clicks.press(event));
  });
  canvas.addEventListener('pointerup', (event) => pass(event, 'mouseReleased', clicks.count));
  canvas.addEventListener('pointermove', (event) => pass(event, 'mouseMoved', 0));
}

/** Counts double and triple clicks: pointer events, unlike clicks, don't. */
class ClickCounter {
  count = 0;
  #last = { at: -1e9, x: 0, y: 0, button: -1 };

  press({ timeStamp: at, clientX: x, clientY: y, button }: PointerEvent): number {
    const { at: before, ...last } = this.#last;
    const again = at - before < 500 && Math.hypot(x - last.x, y - last.y) < 6 && button === last.button;
    this.count = again ? this.count + 1 : 1;
    this.#last = { at, x, y, button };
    return this.count;
  }
}

function takeWheel(canvas: HTMLCanvasElement, screen: LiveScreen, send: Send): void {
  const onWheel = (event: WheelEvent): void => {
    event.preventDefault();
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? 1 : LINE;
    const [deltaX, deltaY] = [event.deltaX * unit, event.deltaY * unit];
    send({ type: 'wheel', ...screen.positionOf(event), deltaX, deltaY, modifiers: modifiersOf(event) });
  };
  canvas.addEventListener('wheel', onWheel, { passive: false });
}

/** A field that nobody sees takes the keys, so that accents, input methods and pasting work as in any other field. */
function takeKeys(keyboard: HTMLTextAreaElement, send: Send): void {
  const pass = (event: KeyboardEvent, action: 'keyDown' | 'keyUp'): void => {
    const { key, code, location, repeat, isComposing } = event;
    if (key === 'Escape' && event.shiftKey) return keyboard.blur();
    // What these keys type comes with the event `input`.
    const typesLater =
      isComposing || key === 'Dead' || key === 'Process' || event.getModifierState('AltGraph');
    if (typesLater || isPaste(event)) return;
    event.preventDefault();
    const modifiers = modifiersOf(event);
    // oxlint-disable-next-line typescript/no-deprecated -- Chromium's commands know keys by this number only
    const { keyCode } = event;
    send({ type: 'key', action, key, code, keyCode, text: textOf(event), location, repeat, modifiers });
  };
  const passText = (): void => {
    if (keyboard.value !== '') send({ type: 'text', text: keyboard.value });
    keyboard.value = '';
  };
  keyboard.addEventListener('keydown', (event) => pass(event, 'keyDown'));
  keyboard.addEventListener('keyup', (event) => pass(event, 'keyUp'));
  keyboard.addEventListener('compositionend', passText);
  keyboard.addEventListener('input', (event) => {
    if (!event.isComposing) passText();
  });
}

function isPaste({ key, ctrlKey, metaKey }: KeyboardEvent): boolean {
  return (ctrlKey || metaKey) && key.toLowerCase() === 'v';
}

/** What a key types: one character, or a new line. */
function textOf({ key, ctrlKey, metaKey }: KeyboardEvent): string {
  if (ctrlKey || metaKey) return '';
  if (key === 'Enter') return '\r';
  // Of the named keys none is as short as one character.
  return /^.$/u.test(key) ? key : '';
}

function modifiersOf({ altKey, ctrlKey, metaKey, shiftKey }: MouseEvent | KeyboardEvent): number {
  return Number(altKey) + 2 * Number(ctrlKey) + 4 * Number(metaKey) + 8 * Number(shiftKey);
}
