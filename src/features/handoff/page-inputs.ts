import { isRecord } from '../../shared/json.js';
import type { CdpSession } from '../../wire/cdp-client.js';
import type { EventParams } from '../../wire/layer.js';

export interface ChosenFile {
  readonly name: string;
  /** The media type. */
  readonly type: string;
  /** In base64. */
  readonly data: string;
}

/** The options of a list. */
export interface PageOptions {
  readonly options: readonly { readonly text: string; readonly isDisabled: boolean }[];
  /** Index of the selected one. */
  readonly selected: number;
}

/** A world whose values the page's scripts cannot change. */
const WORLD = 'pooled-browser-handoff';
/** Characters of base64 in one message: a multiple of 4, so that each part can be decoded. */
const PART = 1024 * 1024;
const MOST_OPTIONS = 1000;

/**
 * Puts files into the input of a file chooser, as a person would drop them there: the browser of a service has no files of this
 * machine.
 */
export async function fillFiles(
  session: CdpSession,
  { frameId, backendNodeId }: EventParams<'Page.fileChooserOpened'>,
  files: readonly ChosenFile[],
): Promise<void> {
  const executionContextId = await openWorld(session, frameId);
  const { object } = await session.ask('DOM.resolveNode', { backendNodeId, executionContextId });
  const call = (functionDeclaration: string, ...values: unknown[]) =>
    session.ask('Runtime.callFunctionOn', {
      objectId: object.objectId,
      functionDeclaration,
      arguments: values.map((value) => ({ value })),
    });
  await call('() => { globalThis.files = new DataTransfer(); }');
  for (const { name, type, data } of files) {
    await call('() => { globalThis.parts = []; }');
    for (let at = 0; at < data.length; at += PART) await call(ADD_PART, data.slice(at, at + PART));
    await call(ADD_FILE, name, type);
  }
  await call(SET_FILES);
}

const ADD_PART = `(part) => {
  const text = atob(part);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  parts.push(bytes);
}`;
const ADD_FILE = '(name, type) => { files.items.add(new File(parts, name, { type })); }';
const SET_FILES = `function () {
  this.files = files.files;
  globalThis.files = globalThis.parts = undefined;
  this.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
  this.dispatchEvent(new Event('change', { bubbles: true }));
}`;

/**
 * Returns the options of the list that has the focus in a page or a frame; the id of the frame if a frame of another origin has the focus.
 */
export async function findOptions(
  session: CdpSession,
  frameId: string,
): Promise<PageOptions | string | undefined> {
  const contextId = await openWorld(session, frameId);
  const evaluate = (expression: string, returnByValue: boolean) =>
    session.ask('Runtime.evaluate', { expression, contextId, returnByValue });
  const { result } = await evaluate(FIND_OPTIONS, true);
  const { options, selected, isFrame } = isRecord(result.value) ? result.value : {};
  if (isFrame === true) {
    const { objectId } = (await evaluate('list', false)).result;
    return (await session.ask('DOM.describeNode', { objectId })).node.frameId;
  }
  if (!Array.isArray(options) || typeof selected !== 'number') return undefined;
  const known = options.filter(isRecord).map(({ text, isDisabled }) => ({
    text: String(text),
    isDisabled: isDisabled === true,
  }));
  return { options: known, selected };
}

const FIND_OPTIONS = `(() => {
  let one = document.activeElement;
  for (let inner = one; inner; inner = one.shadowRoot?.activeElement ?? one.contentDocument?.activeElement) one = inner;
  globalThis.list = one;
  if (one?.contentWindow) return { isFrame: true };
  if (one?.localName !== 'select' || one.multiple || one.size > 1 || one.disabled) return null;
  const options = [...one.options].slice(0, ${MOST_OPTIONS}).map((option) => ({
    text: option.label.trim().slice(0, 200),
    isDisabled: option.disabled || (option.parentElement.localName === 'optgroup' && option.parentElement.disabled),
  }));
  return { options, selected: one.selectedIndex };
})()`;

/** Selects an option of the list that was found last, as a click would. */
export async function chooseOption(session: CdpSession, frameId: string, index: number): Promise<void> {
  const executionContextId = await openWorld(session, frameId);
  await session.ask('Runtime.callFunctionOn', {
    executionContextId,
    functionDeclaration: CHOOSE_OPTION,
    arguments: [{ value: index }],
  });
}

/** Without the focus, Chromium closes the options that it draws. */
const CHOOSE_OPTION = `(index) => {
  const { list } = globalThis;
  if (!list?.isConnected || list.disabled || !list.options[index] || list.options[index].disabled) return;
  list.blur();
  list.focus();
  if (list.selectedIndex === index) return;
  list.selectedIndex = index;
  list.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
  list.dispatchEvent(new Event('change', { bubbles: true }));
}`;

async function openWorld(session: CdpSession, frameId: string): Promise<number> {
  const { executionContextId } = await session.ask('Page.createIsolatedWorld', {
    frameId,
    worldName: WORLD,
  });
  return executionContextId;
}
