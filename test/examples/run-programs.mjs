/**
 * Runs the programs that stdin names, one after the other, and prints a mark after each: a process of its own for each would load the
 * libraries again, which takes seconds of processor time. It ends when stdin does, if no program has left anything open.
 */
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

for await (const line of createInterface({ input: process.stdin })) {
  const { folder, file, mark } = JSON.parse(line);
  process.chdir(folder);
  await import(pathToFileURL(resolve(file)).href);
  console.log(mark);
}
