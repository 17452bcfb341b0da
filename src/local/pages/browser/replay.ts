import type { ReplayFacts, ReplayState } from '../messages.js';
import { byId, make, showBadge } from './dom.js';
import { bytes, clock, duration, short } from './format.js';
import { Player } from './player.js';
import { Timeline } from './timeline.js';

/** How often a recording that goes on is looked at again, in milliseconds. */
const REFRESH = 1_000;

const query = new URLSearchParams(location.search);
const urlOf = (part: string): string => `${location.pathname.replace(/view$/, part)}?${query}`;

const STATES: Readonly<Record<ReplayState, readonly [badge: string, kind: string]>> = {
  recording: ['Recording', 'bad pulse'],
  writing: ['Being written', 'warn pulse'],
  ready: ['Ready', 'good'],
  none: ['No film', ''],
};

const timeline = new Timeline((at) => player.jump(at));
const player = new Player((at) => timeline.follow(at), timeline);

await refresh();

/** Shows the recording as it is now, and again later as long as it changes. */
async function refresh(): Promise<void> {
  const facts = await readFacts();
  if (facts) show(facts);
  if (!facts || facts.state === 'recording' || facts.state === 'writing')
    setTimeout(() => void refresh(), REFRESH);
}

async function readFacts(): Promise<ReplayFacts | undefined> {
  try {
    const response = await fetch(urlOf('facts'));
    if (response.ok) return (await response.json()) as ReplayFacts;
    const { message } = (await response.json()) as { message: string };
    say('This recording can’t be shown', message);
    showBadge(byId('state'), 'Gone', 'bad');
  } catch {
    say('The local pool does not answer', 'It may have been closed. This page asks again.');
    showBadge(byId('state'), 'Offline', 'bad');
  }
  return undefined;
}

function show(facts: ReplayFacts): void {
  const { state, leaseName, sessionId, film, timeline: entries } = facts;
  const name = leaseName ?? `Session ${short(sessionId)}`;
  byId('title').textContent = name;
  document.title = `${name} · Replay`;
  showBadge(byId('state'), ...STATES[state]);
  showFacts(facts);
  if (film) player.load(urlOf('film'), film.duration);
  else say(...explain(facts));
  byId('message').hidden = film !== undefined;
  const download = byId('download', HTMLAnchorElement);
  download.hidden = film === undefined;
  download.href = urlOf('film');
  download.download = `${name}.${film?.type.startsWith('video/mp4') ? 'mp4' : 'webm'}`;
  timeline.show(entries, film?.duration);
}

function explain({ state, failure }: ReplayFacts): [title: string, text: string] {
  if (state === 'recording')
    return ['Still recording', 'The film is there when it ends. This page shows it by itself.'];
  if (state === 'writing')
    return ['The film is being written', 'It takes a moment. This page shows it by itself.'];
  return ['There is no film', failure ?? 'Nothing was shown while it was recorded.'];
}

function say(title: string, text: string): void {
  byId('message-title').textContent = title;
  byId('message-text').textContent = text;
}

function showFacts({ sessionId, replayId, pool, leaseName, startedAt, finishedAt, film }: ReplayFacts): void {
  const facts: readonly (readonly [string, string | undefined])[] = [
    ['Lease', leaseName],
    ['Pool', pool],
    ['Session', sessionId],
    ['Replay', replayId],
    ['Started', new Date(startedAt).toLocaleString()],
    ['Finished', finishedAt && new Date(finishedAt).toLocaleString()],
    ['Length', film && `${clock(film.duration)} (${duration(film.duration)})`],
    ['Picture', film && `${film.width} × ${film.height}`],
    ['Size', film && bytes(film.size)],
  ];
  const rows = facts.flatMap(([term, value]) => {
    return value === undefined ? [] : [make('dt', {}, term), make('dd', { class: 'mono' }, value)];
  });
  byId('facts').replaceChildren(...rows);
}
