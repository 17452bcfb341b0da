/** Returns the content of a `data:` URL in base64. A page in the file system cannot fetch it. */
export function blobOf(url: string): Blob {
  const comma = url.indexOf(',');
  const type = url.slice('data:'.length, comma).replace(';base64', '');
  const parts: Uint8Array<ArrayBuffer>[] = [];
  for (let at = comma + 1; at < url.length; at += PART)
    parts.push(Uint8Array.from(atob(url.slice(at, at + PART)), (character) => character.charCodeAt(0)));
  return new Blob(parts, { type });
}

/** Characters that are decoded at once: four stand for three bytes. */
const PART = 4 * 256 * 1024;
