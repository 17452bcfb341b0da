import type { Replay } from '../service/wire.js';

/** The recording runs. */
export interface RecordingStartedEvent {
  type: 'recording-started';
  sessionId: string;
  replay: Replay;
}

/** There is no recording: the service refused it, or it did not start in time. The run goes on. */
export interface RecordingUnavailableEvent {
  type: 'recording-unavailable';
  sessionId: string;
  error: Error;
}

/** The recording was stopped; with an error, the service did not confirm it: it ends with the lease. */
export interface RecordingStoppedEvent {
  type: 'recording-stopped';
  sessionId: string;
  replay: Replay;
  error?: Error;
}

export type RecordingEvent = RecordingStartedEvent | RecordingUnavailableEvent | RecordingStoppedEvent;
