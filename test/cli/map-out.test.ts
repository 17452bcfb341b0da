import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { writeCsv } from '../../src/cli/map-out.js';

it('the rows of the CSV are in the order of the inputs, also of equal indexes, and other than ASCII', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'csv-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const [checkpoint, out] = [join(folder, 'out.csv.jsonl'), join(folder, 'out.csv')];
  const order = [10, 2, 9, 0, 2, 1];
  const lines = order.map((index, at) => ({
    status: 'fulfilled',
    index,
    input: `ü${at}`,
    attempts: 1,
    value: at,
  }));
  await writeFile(checkpoint, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  await writeCsv(checkpoint, out);
  const rows = (await readFile(out, 'utf8')).trimEnd().split('\r\n').slice(1);
  expect(rows.map((row) => row.split(',').slice(0, 2).join(' '))).toEqual([
    '0 ü3',
    '1 ü5',
    '2 ü1',
    '2 ü4',
    '9 ü2',
    '10 ü0',
  ]);
});
