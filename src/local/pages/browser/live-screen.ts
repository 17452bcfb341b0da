import { byId } from './dom.js';

/** The canvas on which the pictures of the page are drawn. */
export class LiveScreen {
  readonly #canvas = byId('screen', HTMLCanvasElement);
  readonly #context = this.#canvas.getContext('2d', { alpha: false })!;
  /** Of the page, in its own CSS pixels. */
  #size = { width: 0, height: 0 };

  resize(width: number, height: number): void {
    this.#size = { width, height };
  }

  async show(picture: Blob): Promise<void> {
    const bitmap = await createImageBitmap(picture);
    const { width, height } = bitmap;
    // Setting a size clears the canvas: only when it differs.
    if (this.#canvas.width !== width || this.#canvas.height !== height) {
      Object.assign(this.#canvas, { width, height });
    }
    this.#context.drawImage(bitmap, 0, 0);
    bitmap.close();
    this.#canvas.dataset['pictures'] = String(Number(this.#canvas.dataset['pictures'] ?? 0) + 1);
  }

  /** Where in the page a place on the canvas is. */
  positionOf({ clientX, clientY }: MouseEvent): { x: number; y: number } {
    const { left, top, width, height } = this.#canvas.getBoundingClientRect();
    const { width: pageWidth, height: pageHeight } = this.#size;
    return { x: ((clientX - left) / width) * pageWidth, y: ((clientY - top) / height) * pageHeight };
  }
}
