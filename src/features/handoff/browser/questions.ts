import { byId, make, postJson, reconcile, remake } from '../../../shared/page/browser/dom.js';
import type { Question } from '../page-questions.js';
import type { PageReply } from '../replies.js';

/** Largest files in bytes, together. */
const MOST_BYTES = 50 * 1024 * 1024;

interface ReplyOptions {
  readonly send: (reply: PageReply) => void;
  readonly onFault: (text: string) => void;
}

/** Shows what the pages of the browser ask. */
export function showQuestions(questions: readonly Question[], how: ReplyOptions): void {
  const isList = ({ kind }: Question) => kind === 'options';
  // Beside the address, where it covers nothing of the page.
  show(byId('options'), questions.filter(isList), (question) => formOf(question, how));
  const others = questions.filter((question) => !isList(question));
  show(byId('questions'), others, (question) => formOf(question, how), focusIn);
}

function show(
  parent: HTMLElement,
  questions: readonly Question[],
  makeForm: (question: Question) => HTMLElement,
  onNew: (form: HTMLElement) => void = () => {},
): void {
  reconcile(
    parent,
    questions,
    ({ id }) => id,
    (question, present) => {
      const element = remake(present, question, () => makeForm(question));
      if (element !== present) queueMicrotask(() => onNew(element));
      return element;
    },
  );
}

/** What was typed or clicked in the page has asked: the keyboard continues here. */
function focusIn(form: HTMLElement): void {
  form.querySelector<HTMLElement>('input, button')?.focus();
}

function formOf(question: Question, how: ReplyOptions): HTMLElement {
  switch (question.kind) {
    case 'dialog':
      return dialogForm(question, how);
    case 'files':
      return filesForm(question, how);
    case 'options':
      return optionsForm(question, how);
  }
}

function dialogForm(
  { id, type, message, value }: Extract<Question, { kind: 'dialog' }>,
  { send }: ReplyOptions,
) {
  const field = make('input', { value, 'aria-label': 'Answer' });
  const accept = make('button', { class: 'primary' }, type === 'beforeunload' ? 'Leave the page' : 'OK');
  const dismiss = make('button', { type: 'button' }, type === 'beforeunload' ? 'Stay' : 'Cancel');
  const text = type === 'beforeunload' ? 'The page may not have saved what was typed.' : message;
  const form = make(
    'form',
    { class: 'panel' },
    make('strong', {}, 'The page shows a dialog:'),
    make('p', {}, text),
  );
  if (type === 'prompt') form.append(field);
  form.append(make('p', { class: 'line' }, accept, ...(type === 'alert' ? [] : [dismiss])));
  const reply = (isAccepted: boolean) => {
    send({ type: 'dialog', id, accept: isAccepted, text: field.value });
    byId('keyboard').focus();
  };
  dismiss.addEventListener('click', () => reply(false));
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    reply(true);
  });
  return form;
}

function filesForm({ id, isMultiple }: Extract<Question, { kind: 'files' }>, { onFault }: ReplyOptions) {
  const text = isMultiple ? 'The page asks for files:' : 'The page asks for a file:';
  const input = make('input', {
    type: 'file',
    'aria-label': 'Files for the page',
    ...(isMultiple && { multiple: '' }),
  });
  const cancel = make('button', { type: 'button' }, 'Choose nothing');
  const form = make(
    'form',
    { class: 'panel' },
    make('strong', {}, text),
    input,
    make('p', { class: 'line' }, cancel),
  );
  const sending = make('p', { role: 'status' });
  form.append(sending);
  input.addEventListener('change', () => {
    sending.textContent = 'Sending the files to the page.';
    input.disabled = cancel.disabled = true;
    void sendFiles(id, [...(input.files ?? [])], onFault);
  });
  cancel.addEventListener('click', () => void sendFiles(id, [], onFault));
  return form;
}

async function sendFiles(id: string, files: readonly File[], onFault: (text: string) => void): Promise<void> {
  if (files.reduce((sum, { size }) => sum + size, 0) > MOST_BYTES)
    return onFault('These files have more than 50 MB. Choose smaller ones.');
  try {
    const chosen = await Promise.all(
      files.map(async (file) => ({ name: file.name, type: file.type, data: await base64Of(file) })),
    );
    const response = await postJson('files', { id, files: chosen });
    if (!response.ok) onFault(((await response.json()) as { error: string }).error);
  } catch {
    onFault('The files could not be read or sent.');
  }
  byId('keyboard').focus();
}

function base64Of(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener('load', () => {
      const { result } = reader;
      resolve(typeof result === 'string' ? result.slice(result.indexOf(',') + 1) : '');
    });
    reader.addEventListener('error', () => reject(reader.error as Error));
    reader.readAsDataURL(file);
  });
}

function optionsForm(
  { id, options, selected }: Extract<Question, { kind: 'options' }>,
  { send }: ReplyOptions,
) {
  const list = make('select', { 'aria-label': 'Options of the list in the page' });
  for (const [index, { text, isDisabled }] of options.entries()) {
    const option = make('option', { value: String(index) }, text);
    option.disabled = isDisabled;
    option.selected = index === selected;
    list.append(option);
  }
  list.addEventListener('change', () => {
    send({ type: 'option', id, index: list.selectedIndex });
    byId('keyboard').focus();
  });
  return make('form', {}, list);
}
