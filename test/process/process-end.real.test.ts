import { expect, it } from 'vitest';
import { beforeProcessEnds } from '../../src/shared/process-end.js';

it('a task that fails at the exit of the process does not prevent the other tasks', () => {
  const before = process.listeners('exit');
  const ran: string[] = [];
  beforeProcessEnds({
    atExit: () => {
      throw new Error('mine');
    },
  });
  beforeProcessEnds({ atExit: () => void ran.push('second') });
  const atExit = process.listeners('exit').find((listener) => !before.includes(listener));
  atExit!(0);
  expect(ran).toEqual(['second']);
});
