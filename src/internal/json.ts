/** Parses JSON from the wire. A key `__proto__` is dropped: copied onward, it would replace a prototype. */
export function parseJson(text: string): unknown {
  return JSON.parse(text, (key, value: unknown) => (key === '__proto__' ? undefined : value));
}
