import * as v from 'valibot';
import type { HandoffAnswer } from './options.js';
import type { ChosenFile } from './page-inputs.js';

/** Longest note in characters. */
export const LONGEST_NOTE = 10_000;
/** Largest body with files in bytes: 50 MB of files in base64. */
export const MOST_FILES = 70 * 1024 * 1024;

const answer = v.object({
  status: v.picklist(['done', 'declined']),
  note: v.pipe(v.string(), v.maxLength(LONGEST_NOTE)),
});

const files = v.object({
  id: v.string(),
  files: v.array(
    v.object({
      name: v.string(),
      type: v.string(),
      data: v.pipe(v.string(), v.regex(/^[\w+/]*={0,2}$/)),
    }),
  ),
});

const reply = v.variant('type', [
  v.object({ type: v.literal('dialog'), id: v.string(), accept: v.boolean(), text: v.string() }),
  v.object({ type: v.literal('option'), id: v.string(), index: v.pipe(v.number(), v.integer()) }),
]);

/** What the page sends about a question of a page of the browser. */
export type PageReply = v.InferOutput<typeof reply>;

/** Each returns undefined for a value that is none. */
export const readAnswer = reader<HandoffAnswer>(answer);
export const readFiles = reader<{ id: string; files: ChosenFile[] }>(files);
export const readReply = reader<PageReply>(reply);

function reader<Value>(schema: v.GenericSchema<unknown, Value>): (value: unknown) => Value | undefined {
  return (value) => {
    const result = v.safeParse(schema, value);
    return result.success ? result.output : undefined;
  };
}
