import type { Layer } from '../wire/layer.js';
import type { Session } from '../wire/sessions.js';
import type { BrowserState } from './browser-state.js';
import { noteContexts } from './end-contexts.js';
import { noteHttpLogins } from './http-logins.js';
import { noteInstalled, noteWindows } from './installed.js';

/** The layers that note what the clients of a connection leave in their browser. */
export function noteState(state: BrowserState): readonly Layer[] {
  const { contexts } = state;
  // Most of what a page in a context of the lease did ends with its context.
  const isInContext = (session: Session | undefined) => contexts.has(session?.target.browserContextId ?? '');
  return [
    noteHttpLogins((session) => state.noteHttpLogin(isInContext(session))),
    noteContexts(contexts),
    noteInstalled(state.noteExtension, state.notePermanent),
    noteWindows(contexts, isInContext, state.noteChangedWindow),
  ];
}
