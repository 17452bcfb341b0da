/** Names of query parameters whose values are nobody's business. */
const SECRET = /jwt|token|key|secret|passw|auth|sig|session|code/i;

/** A data: URL is a document, not an address. */
const LONGEST_DATA = 60;

/** A URL as it may stand in a timeline: without user, password and the values of parameters that sound secret. */
export function cleanUrl(text: string): string {
  if (!URL.canParse(text)) return text;
  const url = new URL(text);
  if (url.protocol === 'data:') return text.slice(0, LONGEST_DATA);
  if (url.username !== '') url.username = '';
  if (url.password !== '') url.password = '';
  for (const name of new Set(url.searchParams.keys()))
    if (SECRET.test(name)) url.searchParams.set(name, 'hidden');
  return url.href;
}
