/**
 * Handles that a test must not leave open, by Node's names. Pipes are excluded, because vitest uses some for its
 * workers.
 */
const KINDS: Readonly<Record<string, string>> = {
  TCPServerWrap: 'listening TCP server',
  TCPSocketWrap: 'open TCP socket',
  TLSWrap: 'open TLS socket',
  UDPWrap: 'open UDP socket',
  ProcessWrap: 'child process',
};

/** The kind of each server, socket and child process that keeps this process alive. */
export function openHandles(): string[] {
  return process.getActiveResourcesInfo().flatMap((name) => KINDS[name] ?? []);
}

/** Returns what a list has beyond an earlier one, in which a name may stand several times. */
export function newIn(now: readonly string[], before: readonly string[]): string[] {
  const known = [...before];
  return now.filter((name) => {
    const index = known.indexOf(name);
    if (index !== -1) known.splice(index, 1);
    return index === -1;
  });
}

/** Ports and process ids of open handles, for the error message. */
export function describeHandles(): string {
  return activeHandles().flatMap(describe).join(', ');
}

interface HandleLike {
  listening?: boolean;
  address?: () => { port?: number } | string | null;
  localPort?: number;
  remotePort?: number;
  spawnfile?: string;
  pid?: number;
}

/** Undocumented, and optional: it only adds details to the result of `getActiveResourcesInfo`. */
function activeHandles(): HandleLike[] {
  return (process as { _getActiveHandles?: () => HandleLike[] })._getActiveHandles?.() ?? [];
}

function describe(handle: HandleLike): string[] {
  if (handle.spawnfile) return [`child ${handle.pid} ${handle.spawnfile}`];
  if (handle.remotePort) return [`socket from port ${handle.localPort} to port ${handle.remotePort}`];
  const address = handle.listening ? handle.address?.() : undefined;
  return typeof address === 'object' && address?.port ? [`server on port ${address.port}`] : [];
}
