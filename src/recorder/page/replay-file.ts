import { createReadStream } from 'node:fs';
import type { Frame } from '../frames.js';
import { REPLAY_BODY, REPLAY_STYLE, type ReplayFacts } from './replay-page.js';
import { FILES_BESIDE, jsonIn, savePage, type SavedPage } from './saved-page.js';
import { titleOf } from './title.js';

/** What a page in the file system contains. */
export interface SavedFacts extends ReplayFacts {
  /** Names of the files beside the page, or `data:` URLs. Empty: there is none. */
  readonly files: Readonly<Record<'video' | 'poster', string>>;
}

/** What a page that is one file contains beside the facts. */
export interface EmbeddedFiles {
  /** Path of the video, or its bytes. */
  readonly video?: string | Uint8Array | undefined;
  /** Path of the JPEG, or its bytes. */
  readonly poster?: string | Uint8Array | undefined;
  /** The pictures of a recording without a video; the length is in milliseconds. */
  readonly pictures?:
    { readonly length: number; readonly frames: Iterable<Frame> | AsyncIterable<Frame> } | undefined;
}

/** Writes the page of a recording beside its video, or with `data:` URLs. */
export async function saveReplayPage(path: string, facts: SavedFacts): Promise<void> {
  const sources = [
    ...Object.values(facts.files),
    ...(facts.pictures?.frames ?? []).map(({ source }) => source),
  ];
  const isEmbedded = sources.some((source) => source.startsWith('data:'));
  await savePage(path, pageOf(facts, isEmbedded ? 'data:' : FILES_BESIDE), [jsonIn(facts)]);
}

/** Writes the page of a recording as one file that contains the video or the pictures. These are read piece by piece. */
export async function saveSingleReplayPage(
  path: string,
  facts: ReplayFacts,
  embedded: EmbeddedFiles,
): Promise<void> {
  await savePage(path, pageOf(facts, 'data:'), jsonWith(facts, embedded));
}

function pageOf(facts: ReplayFacts, media: string): SavedPage {
  const title = `${titleOf(facts)} · Replay`;
  return { title, script: 'replay', style: REPLAY_STYLE, body: REPLAY_BODY, id: 'recording', media };
}

async function* jsonWith(facts: ReplayFacts, embedded: EmbeddedFiles): AsyncGenerator<string> {
  const { video, poster, pictures } = embedded;
  // Without the closing brace.
  yield jsonIn({ ...facts, pictures: undefined }).slice(0, -1);
  yield ',"files":{"video":"';
  if (video !== undefined) yield* dataUrl('video/webm', video);
  yield '","poster":"';
  if (poster !== undefined) yield* dataUrl('image/jpeg', poster);
  yield '"}';
  if (pictures) yield* picturesJson(pictures);
  yield '}';
}

async function* picturesJson({
  length,
  frames,
}: NonNullable<EmbeddedFiles['pictures']>): AsyncGenerator<string> {
  yield `,"pictures":{"length":${JSON.stringify(length)},"frames":[`;
  let separator = '';
  for await (const { at, jpeg } of frames) {
    yield `${separator}{"at":${JSON.stringify(at)},"source":"`;
    yield* dataUrl('image/jpeg', jpeg);
    yield '"}';
    separator = ',';
  }
  yield ']}';
}

/** Bytes that are encoded at once. Three become four characters. */
const PART = 3 * 256 * 1024;

async function* dataUrl(type: string, content: string | Uint8Array): AsyncGenerator<string> {
  yield `data:${type};base64,`;
  let rest = Buffer.alloc(0);
  for await (const chunk of typeof content === 'string' ? readParts(content) : [content]) {
    const bytes = rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk]);
    const whole = bytes.length - (bytes.length % 3);
    for (let at = 0; at < whole; at += PART) yield bytes.toString('base64', at, Math.min(whole, at + PART));
    rest = bytes.subarray(whole);
  }
  yield rest.toString('base64');
}

function readParts(path: string): AsyncIterable<Uint8Array> {
  return createReadStream(path, { highWaterMark: PART });
}
