/** A recording of a session, as the pages and routes see it. */
export interface LocalReplay {
  readonly replayId: string;
  readonly sessionId: string;
  readonly pool: string;
  /** Name of the lease during which it was made. */
  readonly leaseName?: string;
  readonly startedAt: Date;
  /** When it ended. Missing while it is being recorded, and until its film is written. */
  readonly finishedAt?: Date;
  /** Missing until it is written, and where nothing was shown. */
  readonly film?: Film;
  /** Why there is no film, once it is finished without one. */
  readonly failure?: string;
  /** What happened, in the order of time. */
  readonly timeline: readonly TimelineEntry[];
}

/** A film on disk. */
export interface Film {
  readonly path: string;
  /** Its MIME type, such as `video/webm`. */
  readonly type: string;
  /** In bytes. */
  readonly size: number;
  /** In milliseconds. */
  readonly duration: number;
  /** In pixels. */
  readonly width: number;
  readonly height: number;
}

/** Something that happened while a recording was made. */
export interface TimelineEntry {
  /** Milliseconds since the recording started. */
  readonly at: number;
  readonly kind:
    | 'page-opened'
    | 'page-closed'
    | 'navigation'
    | 'console'
    | 'page-error'
    | 'request-failed'
    | 'click'
    | 'key'
    | 'connected'
    | 'disconnected'
    | 'recording-ended';
  /** One line for a person. */
  readonly text: string;
}

/** The recordings of a local pool. They outlive their sessions. */
export interface ReplayShelf {
  /** Of one session, the oldest first; or of all. */
  list(sessionId?: string): readonly LocalReplay[];
  find(sessionId: string, replayId: string): LocalReplay | undefined;
}
