#!/usr/bin/env node
import { EXIT } from './exit-codes.js';
import { run } from './run.js';

// A reader that is gone (`| head`, a closed terminal) ends the program; unheard, the error would print a stack.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => process.exit(EXIT.failed));

const code = await run(process.argv.slice(2));
// What was called off must not hold the program up. Browsers that still run are ended on the way out.
if (code > EXIT.signal) process.exit(code);
process.exitCode = code;
