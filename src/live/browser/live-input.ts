import type { LiveCommand, MouseCommand } from '../live-commands.js';
import { byId } from '../../shared/page/browser/dom.js';

type Send = (command: LiveCommand) => void;

/** Converts a mouse position on the canvas to a position in the page. */
type ToPage = (event: MouseEvent) => { x: number; y: number };

/** Sends the mouse and keyboard input of a person to the page in the live view. */
export function sendInput(canvas: HTMLCanvasElement, toPage: ToPage, send: Send): void {
  const keyboard = byId('keyboard', HTMLTextAreaElement);
  keyboard.hidden = false;
  canvas.addEventListener('contextmenu', (event) => event.preventDefault());
  // The default action would remove the focus from the keyboard field.
  canvas.addEventListener('mousedown', (event) => event.preventDefault());
  canvas.addEventListener('pointerdown', () => keyboard.focus());
  sendMouse(canvas, toPage, send);
  sendWheel(canvas, toPage, send);
  sendKeys(keyboard, send);
}

const BUTTONS = ['left', 'middle', 'right', 'back', 'forward'] as const;

function sendMouse(canvas: HTMLCanvasElement, toPage: ToPage, send: Send): void {
  const sendEvent = (event: PointerEvent, action: MouseCommand['action'], clickCount: number): void => {
    const button = BUTTONS[event.button] ?? 'none';
    const { buttons } = event;
    const modifiers = modifiersOf(event);
    send({ type: 'mouse', action, ...toPage(event), button, buttons, clickCount, modifiers });
  };
  const clicks = new ClickCounter();
  canvas.addEventListener('pointerdown', (event) => {
    // A drag may leave the canvas, and must still end.
    canvas.setPointerCapture(event.pointerId);
    sendEvent(event, 'mousePressed', clicks.press(event));
  });
  canvas.addEventListener('pointerup', (event) => sendEvent(event, 'mouseReleased', clicks.count));
  canvas.addEventListener('pointermove', (event) => sendEvent(event, 'mouseMoved', 0));
}

/** Counts double and triple clicks, which pointer events do not report. */
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

/** Pixels of a line, for mouse wheels that count lines. */
const LINE = 18;

function sendWheel(canvas: HTMLCanvasElement, toPage: ToPage, send: Send): void {
  const onWheel = (event: WheelEvent): void => {
    event.preventDefault();
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? 1 : LINE;
    const [deltaX, deltaY] = [event.deltaX * unit, event.deltaY * unit];
    send({ type: 'wheel', ...toPage(event), deltaX, deltaY, modifiers: modifiersOf(event) });
  };
  canvas.addEventListener('wheel', onWheel, { passive: false });
}

/** Sends the keys of an invisible text field. In a field, accents, input methods and pasting work. */
function sendKeys(keyboard: HTMLTextAreaElement, send: Send): void {
  const sendEvent = (event: KeyboardEvent, action: 'keyDown' | 'keyUp'): void => {
    const { key, code, location, repeat, isComposing } = event;
    if (key === 'Escape' && event.shiftKey) return keyboard.blur();
    // The text of these keys comes with the `input` event.
    const hasInputEvent =
      isComposing || key === 'Dead' || key === 'Process' || event.getModifierState('AltGraph');
    if (hasInputEvent || isPaste(event)) return;
    event.preventDefault();
    const modifiers = modifiersOf(event);
    // oxlint-disable-next-line typescript/no-deprecated -- CDP identifies keys by this number only
    const { keyCode } = event;
    send({ type: 'key', action, key, code, keyCode, text: textOf(event), location, repeat, modifiers });
  };
  const sendText = (): void => {
    if (keyboard.value !== '') send({ type: 'text', text: keyboard.value });
    keyboard.value = '';
  };
  keyboard.addEventListener('keydown', (event) => sendEvent(event, 'keyDown'));
  keyboard.addEventListener('keyup', (event) => sendEvent(event, 'keyUp'));
  keyboard.addEventListener('compositionend', sendText);
  keyboard.addEventListener('input', (event) => {
    if (!event.isComposing) sendText();
  });
}

function isPaste({ key, ctrlKey, metaKey }: KeyboardEvent): boolean {
  return (ctrlKey || metaKey) && key.toLowerCase() === 'v';
}

/** Returns the text that a key types: one character, a line break, or nothing. */
function textOf({ key, ctrlKey, metaKey }: KeyboardEvent): string {
  if (ctrlKey || metaKey) return '';
  if (key === 'Enter') return '\r';
  // The names of other keys are longer than one character.
  return /^.$/u.test(key) ? key : '';
}

/** Encodes the modifier keys as CDP does: Alt 1, Control 2, Meta 4, Shift 8. */
function modifiersOf({ altKey, ctrlKey, metaKey, shiftKey }: MouseEvent | KeyboardEvent): number {
  return Number(altKey) + 2 * Number(ctrlKey) + 4 * Number(metaKey) + 8 * Number(shiftKey);
}
