import { afterAll } from 'vitest';
import { KnownSecrets } from '../../src/shared/known-secrets.js';
import {
  helpers,
  hosts,
  namedPools,
  reachabilities,
  secrets,
  uncleanBrowsers,
} from '../../src/shared/process-state.js';

/**
 * Setup of every test file. The tests of a process share its modules. Without this, the secrets of one file are hidden in the texts of
 * the next one, where they can be ordinary words, and a test passes although its own secret is not hidden; and a server of the next
 * file that gets the port of an earlier one also gets what is known about that.
 */

const before = new Set(secrets.parameters);

afterAll(() => {
  secrets.known = new KnownSecrets();
  secrets.parameters = before;
  secrets.named = undefined;
  helpers.hasWarned = false;
  for (const byAddress of [hosts, uncleanBrowsers, namedPools, reachabilities]) byAddress.clear();
});
