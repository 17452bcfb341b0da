import { fileURLToPath } from 'node:url';

/** A release request, as a process of its own can send it: see release-process.ts. */
export interface ReleaseTicket {
  url: string;
  token: string;
  body: { session_id: string; reuse: boolean };
}

/** Path of the program that releases leases in a process of its own. */
export const RELEASE_PROCESS = fileURLToPath(new URL('release-process.js', import.meta.url));
