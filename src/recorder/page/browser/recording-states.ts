import type { Badge } from '../../../shared/page/browser/format.js';
import type { RecordingState, ReplayFacts } from '../replay-page.js';

export const RECORDING_STATES: Readonly<Record<RecordingState, Badge>> = {
  recording: ['Recording', 'live pulse'],
  writing: ['Writing video', 'warn pulse'],
  ready: ['Ready', 'good'],
  none: ['No video', ''],
};

export const RESULTS: Readonly<Record<NonNullable<ReplayFacts['result']>, Badge>> = {
  succeeded: ['Succeeded', 'good'],
  failed: ['Failed', 'bad'],
};
