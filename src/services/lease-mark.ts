/** Who leased a browser, when, and for how long: a tag of its session, so that a lease of a crashed machine can be found and ended. */
interface LeaseMark {
  readonly host: string;
  readonly pid: number;
  /** ISO 8601, by the clock of that machine. */
  readonly at: string;
  /** The option `lifetime` of the lease, in ms, without what `extend` adds later. Undefined: none. */
  readonly lifetime: number | undefined;
}

let host: string | undefined;

/** The mark of a lease that this process requests now. @param lifetime In ms. */
export function leaseMark(lifetime?: number): string {
  host ??= process
    .getBuiltinModule('node:os')
    .hostname()
    .replaceAll(/[^\w.-]/g, '-');
  const mark = `${host}/${process.pid}/${new Date().toISOString()}`;
  return lifetime === undefined ? mark : `${mark}/${Math.round(lifetime)}`;
}

/** Reads a mark; undefined for another text. */
export function readMark(mark: string | undefined): LeaseMark | undefined {
  const parts = /^([\w.-]+)\/(\d+)\/(\d{4}-[\dT:.-]+Z)(?:\/(\d{1,15}))?$/.exec(mark ?? '');
  const [, name, pid, at, ms] = parts ?? [];
  if (at === undefined || Number.isNaN(Date.parse(at))) return undefined;
  return { host: name!, pid: Number(pid), at, lifetime: ms === undefined ? undefined : Number(ms) };
}
