import { randomBytes } from 'node:crypto';
import { InvalidOptionError, rejectUnknownOptions } from '../../shared/errors.js';
import type { Log } from '../events.js';
import type { LocalPoolOptions } from '../options.js';
import { check, CALLER, checkObject, isText } from './check.js';
import { checkPools, type CheckedSettings } from './check-pools.js';
import { checkRecording, type CheckedRecording } from './check-recording.js';
import { checkQuirks, type CheckedQuirks } from './check-quirks.js';

/** Options with every default filled in. */
export interface CheckedOptions {
  readonly pools: readonly CheckedSettings[];
  readonly port: number;
  readonly token: string;
  readonly executablePath: string | undefined;
  readonly args: readonly string[];
  readonly quirks: CheckedQuirks;
  readonly recording: CheckedRecording;
  readonly onLog: Log | undefined;
}

/** Fills in the defaults; throws `InvalidOptionError` naming what is wrong. */
export function checkOptions(options: LocalPoolOptions = {}): CheckedOptions {
  checkObject(options, 'options');
  rejectUnknownOptions(options, OPTIONS, CALLER);
  const {
    pools = [{}],
    port = 0,
    token = newToken(),
    executablePath,
    args = [],
    quirks = {},
    recording = {},
    onLog,
  } = options;
  check(Number.isInteger(port) && port >= 0 && port <= 65_535, 'port', 'an integer from 0 to 65535', port);
  check(
    typeof token === 'string' && TOKEN.test(token),
    'token',
    'a string of 8 or more visible ASCII characters',
  );
  check(executablePath === undefined || isText(executablePath), 'executablePath', 'a path', executablePath);
  check(onLog === undefined || typeof onLog === 'function', 'onLog', 'a function', onLog);
  return {
    pools: checkPools(pools),
    port,
    token,
    executablePath,
    args: checkArgs(args),
    quirks: checkQuirks(quirks),
    recording: checkRecording(recording),
    onLog,
  };
}

const OPTIONS = ['pools', 'port', 'token', 'executablePath', 'args', 'quirks', 'recording', 'onLog'];
const TOKEN = /^[\x21-\x7e]{8,}$/;

/** 256 random bits. */
function newToken(): string {
  return randomBytes(32).toString('base64url');
}

function checkArgs(args: readonly string[]): readonly string[] {
  const areFlags = Array.isArray(args) && args.every((flag) => isText(flag) && /^--[^\0]+$/.test(flag));
  check(areFlags, 'args', 'an array of strings that begin with "--"', args);
  const ours = args.find((flag) => /^--(remote-debugging-(port|pipe|address)|user-data-dir)(=|$)/.test(flag));
  if (ours !== undefined)
    throw new InvalidOptionError('args', `The option args may not hold ${ours}: the pool sets it.`);
  return [...args];
}
