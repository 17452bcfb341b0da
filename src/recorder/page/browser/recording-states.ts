import type { Badge } from '../../../shared/page/browser/format.js';
import type { RecordingState } from '../replay-page.js';

export const RECORDING_STATES: Readonly<Record<RecordingState, Badge>> = {
  recording: ['Recording', 'bad pulse'],
  writing: ['Writing video', 'warn pulse'],
  ready: ['Ready', 'good'],
  none: ['No video', ''],
};
