import { LiveScreen, openLive } from '../../../live/browser/live-screen.js';
import type { LiveCommand } from '../../../live/live-commands.js';
import type { LiveMessage } from '../../../live/live-view.js';
import { byId, postJson, showBadge } from '../../../shared/page/browser/dom.js';
import { short } from '../../../shared/page/browser/format.js';
import type { HandoffFacts } from '../page.js';
import type { PageReply } from '../replies.js';
import type { QuestionsMessage } from '../server.js';
import { showQuestions } from './questions.js';

const state = document.getElementById('state');
/** Missing where the browser can't be shown. */
const socket = state ? openLive(new URL('live', location.href).href, onMessage) : undefined;
const screen = state ? new LiveScreen(send) : undefined;
let isOver = false;

socket?.addEventListener('close', ({ reason }) => showEnd(reason || 'The connection to the program ended.'));
document.getElementById('control')?.addEventListener('click', takeControl);
byId('answer').addEventListener('submit', (event) => {
  event.preventDefault();
  const { submitter } = event;
  void answer(submitter instanceof HTMLButtonElement ? submitter.value : 'done');
});
void showFacts();

function send(message: LiveCommand | PageReply): void {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}

function onMessage(data: Blob | string): void {
  const message = typeof data === 'string' ? (JSON.parse(data) as LiveMessage | QuestionsMessage) : data;
  if (!(message instanceof Blob) && message.type === 'questions')
    return showQuestions(message.questions, { send, onFault: showFault });
  if (!(message instanceof Blob) && message.type === 'mode') {
    showBadge(byId('state'), 'Watching', 'good');
    byId('control', HTMLButtonElement).disabled = false;
    return;
  }
  screen!.show(message);
}

function takeControl(): void {
  const control = byId('control', HTMLButtonElement);
  control.hidden = true;
  byId('browser').classList.remove('watching');
  showBadge(byId('state'), 'In control', 'live');
  byId('hint').textContent =
    'The agent waits. Click the page to type into it. Press Shift+Esc to leave the page.';
  screen!.control();
  byId('keyboard').focus();
}

async function answer(status: string): Promise<void> {
  const note = byId('note', HTMLTextAreaElement).value.trim();
  try {
    const response = await postJson('answer', { status, note });
    if (response.ok)
      return showEnd(
        status === 'done' ? 'Thank you. The program goes on.' : 'The program knows that it cannot be done.',
      );
    const { error } = (await response.json()) as { error: string };
    if (response.status === 409) return showEnd(error);
    showFault(error);
  } catch {
    showEnd('The program does not answer. It may have ended.');
  }
}

function showFault(text: string): void {
  byId('fault').textContent = text;
  byId('fault').hidden = false;
}

/** The first reason stays. */
function showEnd(text: string): void {
  if (isOver) return;
  isOver = true;
  byId('over-text').textContent = `${text} You can close this page.`;
  byId('ask').hidden = true;
  const browser = document.getElementById('browser');
  if (browser) browser.hidden = true;
  byId('over').hidden = false;
  byId('over').focus();
  socket?.close();
}

async function showFacts(): Promise<void> {
  try {
    const response = await fetch('facts');
    const { message, name, sessionId, liveViewUrl, end } = (await response.json()) as HandoffFacts;
    byId('message').textContent = message;
    byId('lease').hidden = name === undefined;
    byId('name').textContent = name ?? '';
    byId('session').textContent = short(sessionId);
    byId('session').title = sessionId;
    const link = byId('link', HTMLAnchorElement);
    link.hidden = liveViewUrl === undefined || state !== null;
    link.href = liveViewUrl ?? '';
    if (end !== undefined) showEnd(end);
  } catch {
    showEnd('The program does not answer. It may have ended.');
  }
}
