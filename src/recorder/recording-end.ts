/**
 * Why a recording ended: a request, its maximum duration, the end of the lease, the end of the browser, the limit of
 * bytes, a full disk, another disk error.
 *
 * @inline
 */
export type RecordingEnd =
  'stopped' | 'max-duration' | 'lease-ended' | 'browser-gone' | 'disk-limit' | 'disk-full' | 'disk-failed';

/** As sentences, for the timeline. */
export const END_REASONS: Readonly<Record<RecordingEnd, string>> = {
  stopped: 'It was stopped.',
  'max-duration': 'The maximum duration was reached.',
  'lease-ended': 'The lease ended.',
  'browser-gone': 'The browser ended.',
  'disk-limit': 'The size limit of recordings was reached.',
  'disk-full': 'The disk is full.',
  'disk-failed': 'The disk cannot be written.',
};
