import type { MapProgress } from '../../map/progress.js';

/** How far a job is, in one short line. */
export function describeProgress(progress: MapProgress): string {
  const { done, failed, skipped, leases, rate, total, timeLeft } = progress;
  const facts = [
    `${done + skipped}${total === undefined ? '' : ` of ${total}`} done`,
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(leases > 0 ? [`${leases} ${leases === 1 ? 'browser' : 'browsers'}`] : []),
    `${rate.toFixed(1)}/s`,
    ...(timeLeft !== undefined && timeLeft > 0 ? [`${describeTime(timeLeft)} left`] : []),
  ];
  return facts.join(', ');
}

function describeTime(milliseconds: number): string {
  const seconds = Math.ceil(milliseconds / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
