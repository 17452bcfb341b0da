import { adviceFor } from './advice.js';
import type { Case, Check, Finding, Result } from './check.js';
import { connectionChecks } from './connections.js';
import { checkLease } from './lease.js';
import { checkLibraries, checkNode } from './machine.js';
import { checkAddress, checkPool, checkReachable, checkToken } from './service.js';

const CHECKS: readonly Check[] = [
  { name: 'node', run: checkNode },
  { name: 'libraries', run: checkLibraries },
  { name: 'address', run: checkAddress, isVital: true },
  { name: 'reachable', run: checkReachable, isVital: true },
  { name: 'token', run: checkToken, isVital: true },
  { name: 'pool', run: checkPool, isVital: true },
  { name: 'lease', run: checkLease, isVital: true },
  ...connectionChecks,
];

/** Runs the checks one after the other, each on top of those before. Rejects only when it is called off. */
export async function examine(on: Case, onFinding: (finding: Finding) => void): Promise<Finding[]> {
  const findings: Finding[] = [];
  let missing: string | undefined;
  for (const check of CHECKS) {
    const finding = missing === undefined ? await perform(check, on) : skip(check, missing);
    on.signal.throwIfAborted();
    if (check.isVital && finding.status === 'failed') missing ??= check.name;
    findings.push(finding);
    onFinding(finding);
  }
  return findings;
}

async function perform({ name, run }: Check, on: Case): Promise<Finding> {
  const began = performance.now();
  const result = await Promise.resolve(on).then(run).catch(diagnose);
  return { check: name, ...result, elapsed: Math.round(performance.now() - began) };
}

function diagnose(error: unknown): Result {
  const advice = adviceFor(error);
  const detail = error instanceof Error ? error.message : String(error);
  return { status: 'failed', detail, ...(advice !== undefined && { advice }) };
}

function skip({ name }: Check, missing: string): Finding {
  return { check: name, status: 'skipped', detail: `not checked: it needs ${missing}`, elapsed: 0 };
}
