/** Counts the messages in one direction of a WebSocket (RFC 6455), and finds their ends. */
export class FrameCounter {
  /** Number of complete text and binary messages. */
  messages = 0;
  #head = Buffer.alloc(0);
  #payload = 0;

  /** True between two frames, where another frame may be inserted. */
  get atBoundary(): boolean {
    return this.#payload === 0 && this.#head.length === 0;
  }

  push(chunk: Buffer): void {
    let rest = chunk;
    while (rest.length > 0) {
      const skipped = Math.min(this.#payload, rest.length);
      this.#payload -= skipped;
      rest = rest.subarray(skipped);
      if (rest.length === 0) return;
      this.#head = Buffer.concat([this.#head, rest.subarray(0, 1)]);
      rest = rest.subarray(1);
      this.#readHead();
    }
  }

  #readHead(): void {
    const head = this.#head;
    if (head.length < 2) return;
    const short = head[1]! & 0x7f;
    const lengthBytes = { 126: 2, 127: 8 }[short] ?? 0;
    const masked = (head[1]! & 0x80) !== 0;
    if (head.length < 2 + lengthBytes + (masked ? 4 : 0)) return;
    if (lengthBytes === 0) this.#payload = short;
    else this.#payload = lengthBytes === 2 ? head.readUInt16BE(2) : Number(head.readBigUInt64BE(2));
    const isLast = (head[0]! & 0x80) !== 0;
    const isControl = (head[0]! & 0x08) !== 0;
    if (isLast && !isControl) this.messages++;
    this.#head = Buffer.alloc(0);
  }
}
