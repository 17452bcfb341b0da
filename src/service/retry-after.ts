/** Milliseconds that a response asks to wait (`Retry-After`, in seconds or as a date), if it says so in due form. */
export function retryAfter(headers: Record<string, string | string[] | undefined>): number | undefined {
  const value = headers['retry-after'];
  if (typeof value !== 'string') return undefined;
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  const until = Date.parse(value);
  // Against the service's own clock where it tells it: ours may be days off.
  const now = Date.parse(String(headers['date']));
  const wait = until - (Number.isNaN(now) ? Date.now() : now);
  return wait > 0 ? wait : undefined;
}
