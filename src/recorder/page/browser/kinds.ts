import type { TimelineEntry } from '../../timeline.js';

/** The groups of events that a person can hide. The scrub bar shows the first of these groups where events are close together. */
export const GROUPS = {
  errors: { label: 'Errors', color: 'light-dark(#d6333f, #ff7b7b)' },
  marks: { label: 'Tests and steps', color: 'light-dark(#b25e00, #ffc078)' },
  input: { label: 'Input', color: 'light-dark(#0f8a6d, #4fd1b0)' },
  calls: { label: 'Calls', color: 'light-dark(#1877a8, #66c7ee)' },
  pages: { label: 'Pages', color: 'light-dark(#3b5bdb, #91a7ff)' },
  lease: { label: 'Lease', color: '#9c5bd6' },
  console: { label: 'Console', color: '#7a8496' },
} as const;

export type Group = keyof typeof GROUPS;

export const ALL_GROUPS = Object.keys(GROUPS) as readonly Group[];

/** How each kind of event is shown: its group, which has the colour, and the label before its text. */
const KINDS: Readonly<Record<TimelineEntry['kind'], { group: Group; label: string }>> = {
  mark: { group: 'marks', label: '' },
  failed: { group: 'errors', label: 'Failed' },
  'attempt-failed': { group: 'errors', label: 'Attempt failed' },
  call: { group: 'calls', label: 'Call' },
  command: { group: 'calls', label: 'Command' },
  'page-opened': { group: 'pages', label: 'Page opened' },
  'page-closed': { group: 'pages', label: 'Page closed' },
  navigation: { group: 'pages', label: 'Navigation' },
  dialog: { group: 'pages', label: 'Dialog' },
  download: { group: 'pages', label: 'Download' },
  click: { group: 'input', label: 'Click' },
  key: { group: 'input', label: 'Typing in' },
  console: { group: 'console', label: 'Console' },
  'page-error': { group: 'errors', label: 'Page error' },
  'request-failed': { group: 'errors', label: 'Request failed' },
  connected: { group: 'lease', label: 'Connected' },
  disconnected: { group: 'lease', label: 'Disconnected' },
  'recording-ended': { group: 'lease', label: 'Recording ended' },
};

/** The kinds whose status is the message of an error. */
const CALLS: ReadonlySet<string> = new Set(['call', 'command']);

/** The kinds whose status is that of a request. */
const REQUESTS: ReadonlySet<string> = new Set(['navigation', 'request-failed']);

export function labelOf({ kind }: TimelineEntry): string {
  return KINDS[kind].label;
}

/** A navigation to an error page is an error, and no ordinary page. */
export function groupOf(entry: TimelineEntry): Group {
  return hasFailed(entry) ? 'errors' : KINDS[entry.kind].group;
}

export function hasFailed({ kind, status }: TimelineEntry): boolean {
  if (status === undefined) return false;
  return kind === 'failed' || CALLS.has(kind) || (REQUESTS.has(kind) && !/^[123]/.test(status));
}

export function setColor(element: HTMLElement, group: Group): void {
  element.style.setProperty('--mark', GROUPS[group].color);
}
