import { Option, type Command } from 'commander';
import { pair, time } from '../arguments.js';
import { addServiceOption, type ServiceOptions } from '../service-option.js';

/** Of all commands that lease browsers. */
export interface LeaseRequestOptions extends ServiceOptions {
  name?: string;
  tag?: Readonly<Record<string, string>>;
  startUrl?: string;
  /** Milliseconds. */
  acquireTimeout: number;
  watch?: true;
}

/** Of commands that lease a browser without driving it. */
export interface LeaseOptions extends LeaseRequestOptions {
  release: 'destroy' | 'reuse';
  replays: 'list' | 'record' | 'off';
}

export function addLeaseOptions(command: Command): Command {
  return addLeaseRequestOptions(command)
    .addOption(
      new Option('--release <choice>', 'at the end: destroy it, or back to the pool just as it is')
        .choices(['destroy', 'reuse'])
        .default('destroy'),
    )
    .addOption(
      new Option('--replays <choice>', "links of this lease's recordings, on stderr; record: make one")
        .choices(['list', 'record', 'off'])
        .default('list'),
    );
}

export function addLeaseRequestOptions(command: Command): Command {
  return addServiceOption(command)
    .option('--name <name>', 'name of the lease')
    .option('--tag <key=value>', 'a tag of the lease; can be given several times', pair)
    .option('--start-url <url>', 'what the browser opens')
    .addOption(
      new Option('--acquire-timeout <time>', 'how long to wait for a browser: 500ms, 30s, 5m')
        .argParser(time)
        .default(300_000, '5m'),
    )
    .option('--watch', 'a small process gives the browser back should this one be killed (SIGKILL)');
}
