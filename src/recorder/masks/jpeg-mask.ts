/** A rectangle of a picture, in pixels. */
export interface Area {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/** A picture that is not as Chromium writes it, or whose data is damaged. */
export class UnreadableJpeg extends Error {}

/**
 * Covers areas of a JPEG with one colour. The picture is not decoded: only its Huffman codes are read and written again,
 * which takes about a twentieth of the time. So all other blocks stay as they are, and a covered block, of at most 16 x 16
 * pixels, contains nothing else than the colour. The new codes are the usual ones, because those of the picture depend
 * on what was covered.
 *
 * @throws UnreadableJpeg
 */
export function maskJpeg(jpeg: Buffer, areas: readonly Area[]): Buffer {
  const picture = readHeader(jpeg);
  const writer = new BitWriter(jpeg.length);
  writer.bytes(Buffer.of(0xff, 0xd8));
  for (const segment of picture.kept) writer.bytes(segment);
  writer.bytes(STANDARD_TABLES);
  writer.bytes(headerOfScan(picture.components));
  const covered = coveredUnits(picture, areas);
  // A block has at least two bits.
  if (covered.length > 4 * jpeg.length) throw new UnreadableJpeg('The picture is incomplete.');
  writeScan(new BitReader(jpeg, picture.scan), writer, picture, covered);
  writer.flush();
  writer.bytes(Buffer.of(0xff, 0xd9));
  return writer.written;
}

/**
 * Returns the width and height of a JPEG, in pixels.
 *
 * @throws UnreadableJpeg
 */
export function sizeOfJpeg(jpeg: Buffer): { width: number; height: number } {
  const { width, height } = readHeader(jpeg);
  return { width, height };
}

/** The brightness of covered areas: 0 is black, 255 is white. */
const BRIGHTNESS = 85;

interface Component {
  readonly id: number;
  /** Blocks in a unit, across and down. */
  readonly across: number;
  readonly down: number;
  readonly quantization: number;
  /** The tables of its codes. */
  dc?: Uint16Array | undefined;
  ac?: Uint16Array | undefined;
}

interface Header {
  readonly width: number;
  readonly height: number;
  readonly components: readonly Component[];
  /** The value that a block of one colour has, of each component. */
  readonly colour: readonly number[];
  /** The segments that the masked picture also has. */
  readonly kept: readonly Buffer[];
  /** Where the codes begin. */
  readonly scan: number;
}

function readHeader(jpeg: Buffer): Header {
  const kept: Buffer[] = [];
  const tables = new Map<number, Uint16Array>();
  const firstQuantizers = new Map<number, number>();
  let frame: Pick<Header, 'width' | 'height' | 'components'> | undefined;
  for (let at = 2; at + 4 <= jpeg.length;) {
    const marker = jpeg.readUInt16BE(at);
    const end = at + 2 + jpeg.readUInt16BE(at + 2);
    if (end > jpeg.length || end < at + 4 || marker < 0xffc0) break;
    const content = jpeg.subarray(at + 4, end);
    // A thumbnail of the picture, in a segment for applications, would show what is hidden.
    if (isKept(marker, content)) kept.push(jpeg.subarray(at, end));
    if (marker === 0xffdb) readQuantizers(content, firstQuantizers);
    else if (marker === 0xffc4) readCodes(content, tables);
    else if (marker === 0xffc0) frame = readFrame(content);
    else if (marker === 0xffda) {
      if (!frame) break;
      chooseTables(frame.components, content, tables);
      const colour = frame.components.map(({ quantization }, index) => {
        const quantizer = firstQuantizers.get(quantization);
        if (!quantizer) throw new UnreadableJpeg('A quantization table is missing.');
        return index === 0 ? Math.round((8 * (BRIGHTNESS - 128)) / quantizer) : 0;
      });
      return { ...frame, colour, kept, scan: end };
    } else if (!isKept(marker, content) && !isOfApplication(marker)) break;
    at = end;
  }
  throw new UnreadableJpeg('The picture is no baseline JPEG.');
}

/** Whether a segment is needed: tables of quantizers, the frame, and the meaning of the colours. */
function isKept(marker: number, content: Buffer): boolean {
  if (marker === 0xffe0) return content.length === 14 && content.toString('latin1', 0, 5) === 'JFIF\0';
  if (marker === 0xffe2) return content.toString('latin1', 0, 12) === 'ICC_PROFILE\0';
  return [0xffdb, 0xffc0, 0xffee].includes(marker);
}

/** Whether a segment is of an application, or a comment. */
function isOfApplication(marker: number): boolean {
  return (marker >= 0xffe0 && marker <= 0xffef) || marker === 0xfffe;
}

function readQuantizers(content: Buffer, first: Map<number, number>): void {
  // Tables of 16 bits are not for baseline pictures.
  for (let at = 0; at + 65 <= content.length; at += 65) first.set(content[at]!, content[at + 1]!);
}

function readFrame(content: Buffer): Pick<Header, 'width' | 'height' | 'components'> {
  const count = content[5] ?? 0;
  if (content[0] !== 8 || ![1, 3].includes(count) || content.length !== 6 + 3 * count)
    throw new UnreadableJpeg('The picture has other colours than expected.');
  const components = Array.from({ length: count }, (_, index): Component => {
    const [id, sampling, quantization] = content.subarray(6 + 3 * index);
    // A unit of a picture with one component is one block.
    const [across, down] = count === 1 ? [1, 1] : [sampling! >> 4, sampling! & 15];
    if (![1, 2].includes(across) || ![1, 2].includes(down))
      throw new UnreadableJpeg('Its sampling is unusual.');
    return { id: id!, across, down, quantization: quantization! };
  });
  const [height, width] = [content.readUInt16BE(1), content.readUInt16BE(3)];
  if (width === 0 || height === 0) throw new UnreadableJpeg('The picture is empty.');
  return { width, height, components };
}

/** Reads tables of Huffman codes. A table has for each 16 bits the length of the code that they begin with, and its symbol. */
function readCodes(content: Buffer, tables: Map<number, Uint16Array>): void {
  for (let at = 0; at + 17 <= content.length;) {
    const lengths = content.subarray(at + 1, at + 17);
    const count = lengths.reduce((sum, one) => sum + one, 0);
    const table = new Uint16Array(0x10000);
    for (const { symbol, code, length } of codesOf(lengths, content.subarray(at + 17, at + 17 + count)))
      table.fill((length << 8) | symbol, code << (16 - length), (code + 1) << (16 - length));
    tables.set(content[at]!, table);
    at += 17 + count;
  }
}

function* codesOf(lengths: Uint8Array, symbols: Uint8Array) {
  let code = 0;
  let next = 0;
  for (let length = 1; length <= 16; length++, code <<= 1)
    for (let count = lengths[length - 1]!; count > 0; count--) {
      const symbol = symbols[next++];
      if (symbol === undefined || code >= 1 << length)
        throw new UnreadableJpeg('A table of codes is damaged.');
      yield { symbol, code: code++, length };
    }
}

function chooseTables(
  components: readonly Component[],
  content: Buffer,
  tables: ReadonlyMap<number, Uint16Array>,
): void {
  if (content[0] !== components.length) throw new UnreadableJpeg('The picture has several scans.');
  for (const [index, component] of components.entries()) {
    const [id, selected] = content.subarray(1 + 2 * index);
    component.dc = tables.get((selected ?? 0) >> 4);
    component.ac = tables.get(0x10 | ((selected ?? 0) & 15));
    if (id !== component.id || !component.dc || !component.ac)
      throw new UnreadableJpeg('A table of codes is missing.');
  }
}

/** Returns which units of the picture are covered, line by line. */
function coveredUnits({ width, height, components }: Header, areas: readonly Area[]): Uint8Array {
  const wide = 8 * Math.max(...components.map(({ across }) => across));
  const high = 8 * Math.max(...components.map(({ down }) => down));
  const columns = Math.ceil(width / wide);
  const lines = Math.ceil(height / high);
  const covered = new Uint8Array(columns * lines);
  const within = (value: number, most: number) => Math.max(0, Math.min(most, value));
  for (const { left, top, right, bottom } of areas) {
    const [from, to] = [within(Math.floor(left / wide), columns), within(Math.ceil(right / wide), columns)];
    const last = within(Math.ceil(bottom / high), lines);
    for (let line = within(Math.floor(top / high), lines); line < last; line++)
      covered.fill(1, line * columns + from, line * columns + Math.max(from, to));
  }
  return covered;
}

function writeScan(reader: BitReader, writer: BitWriter, picture: Header, covered: Uint8Array): void {
  const { components, colour } = picture;
  const read = components.map(() => 0);
  const written = components.map(() => 0);
  /** The component of each block of a unit. */
  const blocks = components.flatMap(({ across, down }, index) => Array<number>(across * down).fill(index));
  const copyBlock = (index: number, isCovered: boolean) => {
    const { dc, ac } = components[index]!;
    const codes = CODES[index === 0 ? 0 : 1];
    // The first value of a block is the difference from the block before.
    read[index]! += reader.difference(dc!);
    const value = isCovered ? colour[index]! : read[index]!;
    writer.difference(codes.dc, value - written[index]!);
    written[index] = value;
    copyRest(reader, ac!, codes.ac, isCovered ? undefined : writer);
    if (isCovered) writer.symbol(codes.ac, END_OF_BLOCK);
  };
  for (const isCovered of covered) for (const index of blocks) copyBlock(index, isCovered === 1);
  if (reader.overrun > 0) throw new UnreadableJpeg('The picture is incomplete.');
}

/** Reads the values of a block that follow the first one, and writes them if there is a writer. */
function copyRest(reader: BitReader, table: Uint16Array, codes: Codes, writer: BitWriter | undefined): void {
  for (let value = 1; value < 64; value++) {
    const symbol = reader.symbol(table);
    const size = symbol & 15;
    const bits = reader.bits(size);
    if (size > 10) throw new UnreadableJpeg('A value is too large.');
    writer?.symbol(codes, symbol);
    writer?.bits(bits, size);
    if (symbol === END_OF_BLOCK) return;
    // Zeros before the value.
    value += symbol >> 4;
    if (value > 63) throw new UnreadableJpeg('A block is too long.');
  }
}

const END_OF_BLOCK = 0;

/** Reads the codes of a picture. After their end, all bits are 0. */
class BitReader {
  readonly #data: Buffer;
  #at: number;
  #buffer = 0;
  #count = 0;
  /** Bytes that were read after the end. */
  #missing = 0;

  constructor(data: Buffer, at: number) {
    this.#data = data;
    this.#at = at;
  }

  /** Bytes that the codes lack. */
  get overrun(): number {
    return this.#missing - (this.#count >> 3);
  }

  symbol(table: Uint16Array): number {
    if (this.#count < 16) this.#fill();
    const entry = table[(this.#buffer >>> (this.#count - 16)) & 0xffff]!;
    if (entry === 0 || this.#missing > 4) throw new UnreadableJpeg('A code is damaged.');
    this.#count -= entry >> 8;
    return entry & 0xff;
  }

  /** @param size At most 16. */
  bits(size: number): number {
    if (this.#count < size) this.#fill();
    this.#count -= size;
    return (this.#buffer >>> this.#count) & ((1 << size) - 1);
  }

  difference(table: Uint16Array): number {
    const size = this.symbol(table);
    if (size > 11) throw new UnreadableJpeg('A value is too large.');
    const bits = this.bits(size);
    return size > 0 && bits < 1 << (size - 1) ? bits - (1 << size) + 1 : bits;
  }

  #fill(): void {
    while (this.#count <= 24) {
      const byte = this.#data[this.#at];
      // A byte 255 is followed by 0, or else begins a marker, which ends the codes.
      const isEnd = byte === undefined || (byte === 0xff && this.#data[this.#at + 1] !== 0);
      if (isEnd) this.#missing++;
      else this.#at += byte === 0xff ? 2 : 1;
      this.#buffer = (this.#buffer << 8) | (isEnd ? 0 : byte);
      this.#count += 8;
    }
  }
}

class BitWriter {
  #data: Buffer;
  #length = 0;
  #buffer = 0;
  #count = 0;

  constructor(size: number) {
    this.#data = Buffer.allocUnsafe(2 * size + 1024);
  }

  get written(): Buffer {
    return this.#data.subarray(0, this.#length);
  }

  bytes(bytes: Buffer): void {
    this.#reserve(bytes.length);
    bytes.copy(this.#data, this.#length);
    this.#length += bytes.length;
  }

  /** @param size At most 16. */
  bits(bits: number, size: number): void {
    this.#buffer = (this.#buffer << size) | bits;
    this.#count += size;
    if (this.#length + 8 > this.#data.length) this.#reserve(8);
    while (this.#count >= 8) {
      this.#count -= 8;
      const byte = (this.#buffer >>> this.#count) & 0xff;
      this.#data[this.#length++] = byte;
      if (byte === 0xff) this.#data[this.#length++] = 0;
    }
  }

  symbol(codes: Codes, symbol: number): void {
    const length = codes.lengths[symbol]!;
    if (length === 0) throw new UnreadableJpeg('A symbol is unknown.');
    this.bits(codes.codes[symbol]!, length);
  }

  difference(codes: Codes, difference: number): void {
    const size = 32 - Math.clz32(Math.abs(difference));
    this.symbol(codes, size);
    this.bits(difference < 0 ? difference + (1 << size) - 1 : difference, size);
  }

  /** Fills the last byte with 1, as the format says. */
  flush(): void {
    const rest = (8 - this.#count) & 7;
    if (rest > 0) this.bits((1 << rest) - 1, rest);
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#data.length) return;
    const larger = Buffer.allocUnsafe(2 * this.#data.length + bytes);
    this.#data.copy(larger, 0, 0, this.#length);
    this.#data = larger;
  }
}

/** Codes by symbol. */
interface Codes {
  readonly codes: Uint16Array;
  readonly lengths: Uint8Array;
}

/** The Huffman tables of the standard (ITU-T T.81, annex K.3): the counts of codes by length, and the symbols. */
const STANDARD = {
  0x00: '00010501010101010100000000000000 000102030405060708090a0b',
  0x01: '00030101010101010101010000000000 000102030405060708090a0b',
  0x10: `0002010303020403050504040000017d 010203000411051221314106135161072271143281
    91a1082342b1c11552d1f02433627282090a161718191a25262728292a3435363738393a434445464748494a53545556575859
    5a636465666768696a737475767778797a838485868788898a92939495969798999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9
    bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae1e2e3e4e5e6e7e8e9eaf1f2f3f4f5f6f7f8f9fa`,
  0x11: `00020102040403040705040400010277 00010203110405213106124151076171132232810814
    4291a1b1c109233352f0156272d10a162434e125f11718191a262728292a35363738393a434445464748494a53545556575859
    5a636465666768696a737475767778797a82838485868788898a92939495969798999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8
    b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae2e3e4e5e6e7e8e9eaf2f3f4f5f6f7f8f9fa`,
};

function standardTable(id: keyof typeof STANDARD): Buffer {
  return Buffer.from(STANDARD[id].replaceAll(/\s/g, ''), 'hex');
}

const STANDARD_TABLES = Buffer.concat(
  ([0x00, 0x01, 0x10, 0x11] as const).map((id) => {
    const table = standardTable(id);
    return Buffer.concat([Buffer.of(0xff, 0xc4, 0, table.length + 3, id), table]);
  }),
);

function standardCodes(id: keyof typeof STANDARD): Codes {
  const table = standardTable(id);
  const codes = { codes: new Uint16Array(256), lengths: new Uint8Array(256) };
  for (const { symbol, code, length } of codesOf(table.subarray(0, 16), table.subarray(16))) {
    codes.codes[symbol] = code;
    codes.lengths[symbol] = length;
  }
  return codes;
}

/** The codes for the brightness, and for the other components. */
const CODES = [
  { dc: standardCodes(0x00), ac: standardCodes(0x10) },
  { dc: standardCodes(0x01), ac: standardCodes(0x11) },
] as const;

function headerOfScan(components: readonly Component[]): Buffer {
  const tables = components.flatMap(({ id }, index) => [id, index === 0 ? 0x00 : 0x11]);
  return Buffer.of(0xff, 0xda, 0, 6 + tables.length, components.length, ...tables, 0, 63, 0);
}
