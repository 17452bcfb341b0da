import { styleText } from 'node:util';

type Format = Parameters<typeof styleText>[0];

/** Colours a text, or leaves it as it is. */
export type Paint = (format: Format, text: string) => string;

/** Colours for a terminal that shows them and a person who wants them (NO_COLOR); plain text for all others. */
export function paintFor(stream: NodeJS.WriteStream): Paint {
  const coloured = stream.isTTY && stream.hasColors();
  return (format, text) => (coloured ? styleText(format, text) : text);
}
