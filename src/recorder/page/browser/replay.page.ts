import type { SavedFacts } from '../replay-file.js';
import type { ReplayFacts } from '../replay-page.js';
import { byId, make, showBadge } from '../../../shared/page/browser/dom.js';
import { bytes, clock, short } from '../../../shared/page/browser/format.js';
import { Player } from './player.js';
import { RECORDING_STATES } from './recording-states.js';
import { Timeline } from './timeline.js';

/** Milliseconds between updates while the recording is not complete. */
const REFRESH_INTERVAL = 1_000;

/** The facts of a recording in the file system, where a page cannot fetch. */
const recorded = document.getElementById('recording')?.textContent;
const saved = recorded === undefined || recorded === null ? undefined : (JSON.parse(recorded) as SavedFacts);

const urlOf = (part: 'video' | 'poster'): string => saved?.files[part] ?? servedUrlOf(part);
const servedUrlOf = (part: string): string => `/replay/${part}${location.search}`;

const timeline = new Timeline((at) => player.seek(at));
const player = new Player(timeline);

await refresh();

/** Shows the recording, and updates the page until the recording is complete. */
async function refresh(): Promise<void> {
  const facts = saved ?? (await fetchFacts());
  if (facts) show(facts);
  if (!facts || facts.state === 'recording' || facts.state === 'writing')
    setTimeout(() => (saved ? location.reload() : void refresh()), REFRESH_INTERVAL);
}

async function fetchFacts(): Promise<ReplayFacts | undefined> {
  try {
    const response = await fetch(servedUrlOf('facts'));
    if (response.ok) return (await response.json()) as ReplayFacts;
    const { message } = (await response.json()) as { message: string };
    showMessage('This recording cannot be shown', message);
    showBadge(byId('state'), 'Unavailable', 'bad');
  } catch {
    const advice = 'It may be closed: then its recordings are removed. This page tries again every second.';
    showMessage('The local pool does not answer', advice);
    showBadge(byId('state'), 'Offline', 'bad');
  }
  return undefined;
}

function show(facts: ReplayFacts): void {
  const { state, leaseName, sessionId, video, timeline: entries } = facts;
  const name = leaseName ?? `Session ${short(sessionId)}`;
  byId('title').textContent = name;
  document.title = `${name} · Replay`;
  showBadge(byId('state'), ...RECORDING_STATES[state]);
  showFacts(facts);
  if (video) player.load(urlOf('video'), urlOf('poster'), video.duration);
  else showMessage(...explain(facts));
  byId('message').hidden = video !== undefined;
  const download = byId('download', HTMLAnchorElement);
  download.hidden = video === undefined;
  download.href = urlOf('video');
  // Browsers download nothing from the file system: the link then opens the file.
  if (saved) download.textContent = 'Video file';
  else download.download = `${name}.webm`;
  timeline.show(entries, video?.duration);
}

function explain({ state, failure }: ReplayFacts): [title: string, text: string] {
  if (state === 'recording' && saved) return ['Still recording', SAVED_ADVICE];
  if (state === 'recording')
    return ['Still recording', 'This page shows the video soon after the recording ends.'];
  if (state === 'writing') return ['Writing the video', 'This page shows the video in a moment.'];
  return ['There is no video', failure ?? 'The browser showed no page during the recording.'];
}

const SAVED_ADVICE =
  'This page shows the video soon after the recording ends. If the recording was killed, there is no video.';

function showMessage(title: string, text: string): void {
  byId('message-title').textContent = title;
  byId('message-text').textContent = text;
}

function showFacts(facts: ReplayFacts): void {
  const { sessionId, replayId, pool, leaseName, startedAt, finishedAt, video } = facts;
  const terms = {
    Lease: leaseName,
    Pool: pool,
    Session: sessionId,
    Replay: replayId,
    Started: new Date(startedAt).toLocaleString(),
    Finished: finishedAt && new Date(finishedAt).toLocaleString(),
    Length: video && clock(video.duration),
    Picture: video && `${video.width} × ${video.height}`,
    Size: video && bytes(video.size),
  };
  const rows = Object.entries(terms).flatMap(([term, value]) => {
    return value === undefined ? [] : [make('dt', {}, term), make('dd', { class: 'mono' }, value)];
  });
  byId('facts').replaceChildren(...rows);
}
