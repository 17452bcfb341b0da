import { afterAll } from 'vitest';
import { KnownSecrets } from '../../src/shared/known-secrets.js';
import { secrets } from '../../src/shared/process-state.js';

/**
 * Setup of every test file. The unit tests of a process share its modules: without this, the secrets of one file are hidden in the
 * texts of the next one, where they can be ordinary words, and a test passes although its own secret is not hidden.
 */

const before = new Set(secrets.parameters);

afterAll(() => {
  secrets.known = new KnownSecrets();
  secrets.parameters = before;
  secrets.named = undefined;
});
