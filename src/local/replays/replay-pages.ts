import { pathToFileURL } from 'node:url';
import { isSameSecret } from '../../net/loopback-server.js';
import { REPLAY_BODY, REPLAY_STYLE } from '../../recorder/page/replay-page.js';
import type { Recording } from '../../recorder/recording.js';
import type { LocalFeature } from '../feature.js';
import { notFound } from '../http/answer.js';
import { invalidLink, pageAnswer, tokenInQuery, type PageCall } from '../http/page.js';
import type { LeaseRecordings } from './lease-recordings.js';
import { videoAnswer } from './video-answer.js';

/** URL of a recording for clients: of its page in the file system, if the recording outlives this process. */
export function replayViewUrl(host: string, recording: Recording): string {
  const { saved } = recording.files;
  return saved === undefined ? replayPageUrl(host, recording) : pathToFileURL(saved.page).href;
}

/** URL of the page that this process serves; browsers refuse links from its other pages to a file. It opens this recording only. */
export function replayPageUrl(host: string, { linkToken }: Recording): string {
  return `http://${host}/replay?token=${linkToken}`;
}

/** The page of each recording, its facts, its video, and the picture in place of the video until it plays. */
export function replayPages(recordings: LeaseRecordings): LocalFeature {
  const find = ({ query }: PageCall): Recording => {
    const token = tokenInQuery(query);
    const recording = recordings.list().find(({ linkToken }) => isSameSecret(token, linkToken));
    if (!recording) throw invalidLink(ADVICE);
    return recording;
  };
  return {
    styles: { replay: REPLAY_STYLE },
    pages: {
      'GET /replay': (call) => {
        find(call);
        return pageAnswer({ title: 'Replay', name: 'replay', body: REPLAY_BODY });
      },
      'GET /replay/facts': (call) => ({ status: 200, body: find(call).facts }),
      'GET /replay/video': (call) => {
        const { video } = find(call);
        if (!video) throw notFound('This recording has no video, or its video is not written yet.');
        return videoAnswer(video, call.request);
      },
      'GET /replay/poster': async (call) => {
        const poster = await find(call).readPoster();
        if (!poster) throw notFound('This recording has no poster.');
        return { status: 200, content: { type: 'image/jpeg', size: poster.length, data: poster } };
      },
    },
  };
}

const ADVICE =
  'This link to a recording is incomplete, or its recording was removed. A recording exists until its local pool ' +
  'ends, or until newer recordings replace it. The dashboard of the local pool lists all recordings. To keep ' +
  'recordings, set the option recording.folder of startLocalPool, or pass --recordings to "pooled-browser serve".';
