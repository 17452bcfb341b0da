import { decode, encode } from 'jpeg-js';
import { expect, it } from 'vitest';
import { maskJpeg, sizeOfJpeg } from '../../src/recorder/masks/jpeg-mask.js';

const WIDTH = 101;
const HEIGHT = 67;

/** A picture of random colours. */
function randomPicture(): Buffer {
  const data = Buffer.alloc(4 * WIDTH * HEIGHT);
  for (let at = 0; at < data.length; at++) data[at] = (at * at * 7919) >> 5;
  return encode({ width: WIDTH, height: HEIGHT, data }, 70).data;
}

const picture = randomPicture();

it('covers areas with one colour, and changes nothing else', () => {
  const area = { left: 20.5, top: -10, right: 50, bottom: 30 };
  const masked = decode(maskJpeg(picture, [area, { left: 90, top: 60, right: Infinity, bottom: Infinity }]));
  const original = decode(picture);
  // Blocks have 8 x 8 pixels.
  const isCovered = (x: number, y: number) => (x >= 16 && x < 56 && y < 32) || (x >= 88 && y >= 56);
  for (let y = 0; y < HEIGHT; y++)
    for (let x = 0; x < WIDTH; x++) {
      const at = 4 * (y * WIDTH + x);
      const [red, green, blue] = masked.data.subarray(at, at + 3);
      if (isCovered(x, y)) expect([red === green, green === blue]).toEqual([true, true]);
      else expect([red, green, blue]).toEqual([...original.data.subarray(at, at + 3)]);
    }
  expect(sizeOfJpeg(picture)).toEqual({ width: WIDTH, height: HEIGHT });
});

it('makes the same picture of two that differ only in what is covered', () => {
  const everything = { left: 0, top: 0, right: WIDTH, bottom: HEIGHT };
  const black = encode({ width: WIDTH, height: HEIGHT, data: Buffer.alloc(4 * WIDTH * HEIGHT) }, 70).data;
  expect(maskJpeg(picture, [everything]).equals(maskJpeg(black, [everything]))).toBe(true);
});

it('leaves out comments and thumbnails, which could show what is covered', () => {
  const secret = Buffer.from('Exif\0\0 a thumbnail');
  const segment = (marker: number) => Buffer.concat([Buffer.of(0xff, marker, 0, secret.length + 2), secret]);
  const more = Buffer.concat([picture.subarray(0, 2), segment(0xe1), segment(0xfe), picture.subarray(2)]);
  expect(maskJpeg(more, []).includes('thumbnail')).toBe(false);
  expect(maskJpeg(more, []).equals(maskJpeg(picture, []))).toBe(true);
});

it('refuses pictures that are damaged, of any length and with any byte changed', () => {
  const area = { left: 0, top: 0, right: 40, bottom: 40 };
  for (let length = 0; length < picture.length - 8; length += 13)
    expect(() => maskJpeg(picture.subarray(0, length), [area])).toThrow(/./);
  let refused = 0;
  for (let at = 0; at < picture.length; at++) {
    const damaged = Buffer.from(picture);
    damaged[at]! ^= 0x55;
    try {
      // Some damage only changes colours.
      expect(maskJpeg(damaged, [area]).length).toBeLessThan(4 * picture.length);
    } catch (error) {
      expect((error as Error).constructor.name).toBe('UnreadableJpeg');
      refused++;
    }
  }
  expect(refused).toBeGreaterThan(100);
});
