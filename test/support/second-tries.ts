import type { Reporter, TestModule } from 'vitest/node';

/** Names the tests that passed, but not at once: CI tries them again, and nobody is to overlook that. */
export default class SecondTries implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    for (const module of modules) {
      for (const test of module.children.allTests('passed')) {
        if (test.diagnostic()?.flaky)
          console.log(`=== passed at the second try only: ${test.fullName} (${module.relativeModuleId})`);
      }
    }
  }
}
