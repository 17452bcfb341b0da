/** The features of the local pool. Each is a folder and its line here: without both, the rest works as before. */
export { chaos } from './chaos/chaos.js';
export { dashboard } from './dashboard/dashboard.js';
export { liveView } from './live/live.js';
