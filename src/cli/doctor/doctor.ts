import { ExitStatus } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import { interruptible } from '../interruptible.js';
import { paintFor } from '../paint.js';
import type { ServiceOptions } from '../service-option.js';
import type { Finding } from './check.js';
import { describeFinding } from './describe-finding.js';
import { examine } from './examine.js';

/** What the command line says about `doctor`. */
export interface DoctorOptions extends ServiceOptions {
  /** Milliseconds. */
  acquireTimeout: number;
  json?: true;
}

/** Runs all checks and tells of each; ends with a failure when one has failed. */
export async function doctor(pool: string | undefined, { json, ...options }: DoctorOptions): Promise<void> {
  const paint = paintFor(process.stdout);
  const print = (text: string) => process.stdout.write(`${text}\n`);
  const onFinding = (finding: Finding) => void (json ?? print(describeFinding(finding, paint)));
  const checks = await interruptible((signal) => examine({ ...options, pool, signal }, onFinding));
  const ok = checks.every(({ status }) => status !== 'failed');
  if (json) print(JSON.stringify({ ok, checks }));
  if (!ok) throw new ExitStatus(EXIT.failed);
}
