// A run that fails. Used by ../uncaught.real.test.ts.
import { withPooledBrowser } from '../../../dist/index.js';
import { connector } from './plain.mjs';

const [, , way] = process.argv;
const fail = () => {
  throw new Error('of the callback');
};
const running = withPooledBrowser('test', fail, { connector });
if (way === 'thrown') await running;
if (way === 'unhandled') void running;
if (way === 'wrapped')
  await running.catch((cause) => {
    throw new Error('Checkout failed', { cause });
  });
if (way === 'caught') await running.catch(() => {});
