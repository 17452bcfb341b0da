/** Says something to the person, on stderr: stdout is for what was asked for. */
export function note(text: string): void {
  process.stderr.write(`pooled-browser: ${printable(text)}\n`);
}

/** Text from a service may hold anything: it must not steer the terminal. */
export function printable(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n]/gu, ' ');
}
