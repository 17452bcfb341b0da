/** The text of a badge, and its class. */
export type Badge = readonly [text: string, kind: string];

/** Formats milliseconds as `1:02.3`. */
export function clock(milliseconds: number): string {
  const tenths = Math.floor(Math.max(0, milliseconds) / 100);
  const [minutes, seconds] = [Math.floor(tenths / 600), (tenths % 600) / 10];
  return `${minutes}:${seconds.toFixed(1).padStart(4, '0')}`;
}

/** Formats milliseconds as `12 s`, `3 min 20 s` or `1 h 5 min`. */
export function duration(milliseconds: number): string {
  const seconds = Math.floor(milliseconds / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60
    ? `${minutes} min ${seconds % 60} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Formats milliseconds as `3.2 s`, and as `duration` above a minute. */
export function seconds(milliseconds: number): string {
  return milliseconds < 60_000 ? `${(milliseconds / 1000).toFixed(1)} s` : duration(milliseconds);
}

/** Formats bytes as `12 kB` or `1.2 MB`. */
export function bytes(count: number): string {
  if (count < 1_000_000) return `${Math.max(1, Math.round(count / 1000))} kB`;
  return `${(count / 1_000_000).toFixed(1)} MB`;
}

export function short(id: string): string {
  return id.slice(0, 8);
}

/** The words of a search, in lower case. */
export function wordsOf({ value }: HTMLInputElement): readonly string[] {
  return value.toLowerCase().split(/\s+/).filter(Boolean);
}

/** The fragment of a link to a moment of a video. @param at In milliseconds. */
export function fragmentOf(at: number): string {
  return `#t=${Math.round(at) / 1000}`;
}

/** Characters that control text, forge a line or change the direction of text, and halves of characters. */
const UNSAFE = /[\p{Cc}\p{Surrogate}\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/gu;

/**
 * Text from outside, on one line: white space is one space, and characters that would change how the text around them is shown
 * are escaped.
 *
 * @param length In characters. Default: 1000.
 */
export function plain(text: string, length = 1_000): string {
  const line = text
    .slice(0, 2 * length)
    .replaceAll(/\s+/g, ' ')
    .trim();
  const shown = line.replaceAll(UNSAFE, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);
  return shown.length > length || text.length > 2 * length ? `${shown.slice(0, length)}…` : shown;
}
