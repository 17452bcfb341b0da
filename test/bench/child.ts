import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** A program of this folder in a process of its own, and the JSON that it prints first. It ends with this process. */
export async function startProgram(
  name: string,
  args: string[] = [],
): Promise<{
  facts: { baseUrl: string };
  ask: (question: unknown) => Promise<unknown>;
  stop: () => Promise<void>;
}> {
  const child = fork(fileURLToPath(new URL(`programs/${name}`, import.meta.url)), args, {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    execArgv: [],
  });
  const [line] = (await once(createInterface({ input: child.stdout! }), 'line')) as [string];
  return {
    facts: JSON.parse(line) as { baseUrl: string },
    async ask(question) {
      child.send(question as object);
      const [answer] = (await once(child, 'message')) as [unknown];
      return answer;
    },
    async stop() {
      child.kill();
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
}
