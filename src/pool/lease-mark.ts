/** Who leased a browser, and when: a tag of its session, so that a lease of a crashed machine can be found and ended. */
interface LeaseMark {
  readonly host: string;
  readonly pid: number;
  /** ISO 8601, by the clock of that machine. */
  readonly at: string;
}

let host: string | undefined;

/** The mark of a lease that this process requests now. */
export function leaseMark(): string {
  host ??= process
    .getBuiltinModule('node:os')
    .hostname()
    .replaceAll(/[^\w.-]/g, '-');
  return `${host}/${process.pid}/${new Date().toISOString()}`;
}

/** Reads a mark; undefined for another text. */
export function readMark(mark: string | undefined): LeaseMark | undefined {
  const [, name, pid, at] = /^([\w.-]+)\/(\d+)\/(\d{4}-[\dT:.-]+Z)$/.exec(mark ?? '') ?? [];
  return at === undefined || Number.isNaN(Date.parse(at)) ? undefined : { host: name!, pid: Number(pid), at };
}
