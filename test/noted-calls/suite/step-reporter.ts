import type { Reporter, TestCase, TestResult, TestStep } from '@playwright/test/reporter';

/** Prints a line of JSON for each test: its steps with their lines, its errors, and what it printed. */
export default class StepReporter implements Reporter {
  onTestEnd({ title }: TestCase, { steps, errors, stdout }: TestResult): void {
    const facts = {
      title,
      steps: steps.flatMap((step) => linesOf(step, 0)),
      errors: errors.map(({ stack = '' }) => withoutLog(stack)),
      notes: stdout.join('').trim().split('\n'),
    };
    process.stdout.write(`${JSON.stringify(facts)}\n`);
  }
}

function linesOf({ category, title, location, error, steps }: TestStep, depth: number): string[] {
  const own = `${'  '.repeat(depth)}${category} ${title} :${location?.line} ${withoutLog(error?.message ?? '')}`;
  return [own, ...steps.flatMap((step) => linesOf(step, depth + 1))];
}

/** The first line of an error and the lines of its callers. How often the library tried depends on the speed of the machine. */
function withoutLog(text: string): string {
  return text
    .split('\n')
    .filter((line, index) => index === 0 || line.startsWith('    at '))
    .join('\n');
}
