import { Option, type Command } from 'commander';
import { time } from '../arguments.js';
import { ABOUT_TOKEN, addServiceOption } from '../service-option.js';
import type { DoctorOptions } from './doctor.js';

export function addDoctor(program: Command): void {
  const command = program
    .command('doctor')
    .summary('check all that a lease needs, step by step')
    .description(
      'Checks, one after the other, what a lease needs, and says of each fault what to do about it.',
    )
    .argument('[pool]', 'id or name of a pool to lease from; without one, nothing is leased');
  addServiceOption(command)
    .addOption(
      new Option('--acquire-timeout <time>', 'how long each lease may wait for a browser')
        .argParser(time)
        .default(15_000, '15s'),
    )
    .option('--json', 'print JSON')
    .addHelpText('after', HELP)
    .action(async (pool: string | undefined, options: DoctorOptions) =>
      (await import('./doctor.js')).doctor(pool, options),
    );
}

const HELP = `
It checks this Node, the installed libraries, the address of the service and whether it answers, the
token, and the pool; then it leases a browser with each library and protocol, has a page work out
1 + 1, and gives it back. It ends with 0 when nothing is wrong, with 1 otherwise.
${ABOUT_TOKEN}

Examples:
  $ pooled-browser doctor
  $ pooled-browser doctor scrapers
  $ pooled-browser doctor scrapers --json | jq '.checks[] | select(.status == "failed")'`;
