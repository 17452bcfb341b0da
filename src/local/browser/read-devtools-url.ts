import type { ChildProcess } from 'node:child_process';
import { redact } from '../../shared/redact.js';

const START_TIMEOUT = 30_000;

/** How much of stderr an error shows. */
const TAIL_LENGTH = 2_000;

/** After an exit, how long its last words may take to arrive. */
const LAST_WORDS = 100;

/** Reads the address from what a starting Chromium writes; rejects when it exits, takes too long, or is called off. */
export function readDevToolsUrl(child: ChildProcess, signal: AbortSignal): Promise<URL> {
  return new Promise((resolve, reject) => {
    let tail = '';
    const settled = new AbortController();
    const fail = (what: string) => settle(() => reject(new Error(`${what}\n${lastLines(tail)}`.trimEnd())));
    const settle = (outcome: () => void) => {
      if (settled.signal.aborted) return;
      settled.abort();
      clearTimeout(timer);
      outcome();
    };
    const timer = setTimeout(
      () => fail(`it took longer than ${START_TIMEOUT / 1000} seconds.`),
      START_TIMEOUT,
    );
    signal.addEventListener('abort', () => fail('it was called off.'), { signal: settled.signal });
    child.once('error', (error) => fail(error.message));
    child.once('exit', (code, by) => {
      setTimeout(() => fail(`it ended with ${by ?? `exit code ${code}`}.`), LAST_WORDS);
    });
    // Stays attached: a full pipe would stop a browser that writes much.
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      if (settled.signal.aborted) return;
      tail = (tail + chunk).slice(-TAIL_LENGTH * 2);
      const url = /^DevTools listening on (ws:\/\/\S+)\s/m.exec(tail)?.[1];
      if (url !== undefined) settle(() => resolve(new URL(url)));
    });
  });
}

function lastLines(tail: string): string {
  return redact(tail).slice(-TAIL_LENGTH);
}
