import { existsSync } from 'node:fs';
import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { writeCsv } from '../../src/cli/map-out.js';
import { namingFile } from '../../src/shared/naming-file.js';

it('a text of a page is no formula in the CSV, and numbers stay numbers', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'csv-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const [checkpoint, out] = [join(folder, 'out.csv.jsonl'), join(folder, 'out.csv')];
  const value = {
    a: '=HYPERLINK("x")',
    b: '@x',
    c: '-5',
    d: -5,
    e: '+49 30 1',
    f: '\tx',
    g: '-1+cmd',
    h: 'a=b',
  };
  await writeFile(checkpoint, `${JSON.stringify({ status: 'fulfilled', index: 0, input: '\r=1', value })}\n`);
  await writeCsv(checkpoint, out);
  const [, row] = /\r\n([^]*)\r\n$/.exec(await readFile(out, 'utf8'))!;
  expect(row).toBe(`0,"'\r=1",fulfilled,,,"'=HYPERLINK(""x"")",'@x,-5,-5,'+49 30 1,'\tx,'-1+cmd,a=b`);
});

it.runIf(existsSync('/dev/full'))('an error of a full disk names the file', async () => {
  const file = await open('/dev/full', 'a');
  onTestFinished(() => file.close());
  const writing = namingFile('/data/out.csv', () => file.writeFile('text'));
  await expect(writing).rejects.toThrow("ENOSPC: no space left on device, write '/data/out.csv'");
});

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
