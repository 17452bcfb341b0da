import type { SavedFacts } from '../replay-file.js';
import type { MaskedPictures, ReplayFacts } from '../replay-page.js';
import { titleOf } from '../title.js';
import { byId, make, showBadge, timeOf } from '../../../shared/page/browser/dom.js';
import { bytes, clock, plain, type Badge } from '../../../shared/page/browser/format.js';
import { Player } from './player.js';
import { RECORDING_STATES, RESULTS } from './recording-states.js';
import { PictureScreen, VideoScreen } from './screen.js';
import { Timeline } from './timeline.js';

/** Characters that are decoded at once: four stand for three bytes. */
const PART = 4 * 256 * 1024;

/** Milliseconds between updates while the recording is not complete. */
const REFRESH_INTERVAL = 1_000;

// The page is shown before the end of this module: what it needs stands above.
const SAVED_ADVICE =
  'This page shows the video soon after the recording ends. If the recording was killed, there is no video.';

/** A person who sees a box, or misses a picture, must not take it for a fault of the page. */
const MASKS: Readonly<Record<MaskedPictures, string>> = {
  covered: 'Grey boxes cover password fields and elements that recording.hide names.',
  'left-out': 'Pictures with password fields, or elements that recording.hide names, are left out.',
};

/** The facts of a recording in the file system, where a page cannot fetch. */
const recorded = document.getElementById('recording')?.textContent;
const saved = recorded === undefined || recorded === null ? undefined : (JSON.parse(recorded) as SavedFacts);

const videoUrl = (): string => saved?.files.video ?? servedUrlOf('video');
const servedUrlOf = (part: string): string => `/replay/${part}${location.search}`;

const timeline = new Timeline((at) => player.seek(at));
const player = new Player(timeline);
let isFirst = true;

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
  const { video, pictures } = facts;
  const name = plain(titleOf(facts), 200);
  byId('title').textContent = name;
  document.title = `${name} · Replay`;
  showBadge(byId('state'), ...badgeOf(facts));
  showFacts(facts);
  showMask(facts);
  timeline.show(facts.timeline, lengthOf(facts));
  if (!video && !pictures) showMessage(...explain(facts));
  byId('message').hidden = video !== undefined || pictures !== undefined;
  if (load(facts) || isFirst) player.seekToFragment();
  isFirst = false;
  if (video) offerDownload(name);
  player.showEvents();
}

/** @returns Whether there is something to play now that was not there before. */
function load({ video, pictures }: ReplayFacts): boolean {
  if (video) return player.load((change) => new VideoScreen(videoUrl(), change), video.duration);
  if (!pictures) return false;
  return player.load((change) => new PictureScreen(pictures, change), pictures.length);
}

function lengthOf({ video, pictures }: ReplayFacts): number | undefined {
  return video?.duration ?? pictures?.length;
}

function badgeOf({ state, result }: ReplayFacts): Badge {
  const isOver = state === 'ready' || state === 'none';
  return isOver && result ? RESULTS[result] : RECORDING_STATES[state];
}

function offerDownload(name: string): void {
  const download = byId('download', HTMLAnchorElement);
  const url = videoUrl();
  const isOnePage = url.startsWith('data:');
  download.hidden = false;
  download.href = isOnePage ? '#' : url;
  // Browsers download nothing from the file system: the link then opens the file.
  if (saved && !isOnePage) download.textContent = 'Video file';
  else download.download = `${name}.webm`;
  // Chromium refuses to download a `data:` URL of more than 2 MB.
  if (isOnePage)
    download.onclick = () => {
      if (download.href.startsWith('blob:')) return;
      download.href = URL.createObjectURL(blobOf(url));
    };
}

/** Returns the content of a `data:` URL in base64. A page in the file system cannot fetch it. */
function blobOf(url: string): Blob {
  const comma = url.indexOf(',');
  const type = url.slice('data:'.length, comma).replace(';base64', '');
  const parts: Uint8Array<ArrayBuffer>[] = [];
  for (let at = comma + 1; at < url.length; at += PART)
    parts.push(Uint8Array.from(atob(url.slice(at, at + PART)), (character) => character.charCodeAt(0)));
  return new Blob(parts, { type });
}

function explain({ state, failure }: ReplayFacts): [title: string, text: string] {
  if (state === 'recording' && saved) return ['Still recording', SAVED_ADVICE];
  if (state === 'recording')
    return ['Still recording', 'This page shows the video soon after the recording ends.'];
  if (state === 'writing') return ['Writing the video', 'This page shows the video in a moment.'];
  return ['There is no video', plain(failure ?? 'The browser showed no page during the recording.')];
}

function showMessage(title: string, text: string): void {
  byId('message-title').textContent = title;
  byId('message-text').textContent = text;
}

function showMask({ masked }: ReplayFacts): void {
  byId('masked').hidden = masked === undefined;
  byId('masked').textContent = masked === undefined ? '' : MASKS[masked];
}

function showFacts(facts: ReplayFacts): void {
  const { sessionId, replayId, pool, service, leaseName, tags = {}, startedAt, finishedAt, video } = facts;
  const { state, result, failure, pictures } = facts;
  const length = lengthOf(facts);
  const pairs = Object.entries(tags).map(([name, value]) => `${name}=${value}`);
  const terms = {
    Result: result && RESULTS[result][0],
    Lease: leaseName,
    Tags: pairs.length > 0 ? pairs.join(', ') : undefined,
    Pool: pool,
    Service: service,
    Session: sessionId,
    Replay: replayId,
    Started: timeOf(new Date(startedAt), 'medium'),
    Finished: finishedAt && timeOf(new Date(finishedAt), 'medium'),
    Length: length === undefined ? undefined : clock(length),
    Picture: video && `${video.width} × ${video.height}`,
    Pictures: pictures && String(pictures.frames.length),
    Size: video && bytes(video.size),
    // A recording that has nothing to show says this in place of the video.
    Note: state === 'ready' ? failure : undefined,
  };
  const rows = Object.entries(terms).flatMap(([term, value]) => {
    if (value === undefined) return [];
    const shown = typeof value === 'string' ? plain(value) : value;
    return [make('dt', {}, term), make('dd', { class: 'mono' }, shown)];
  });
  byId('facts').replaceChildren(...rows);
}
