/** A local pool in a process of its own: what it calls is on no way of a lease. It answers each message with its tables. */
import { startLocalPool } from '../../src/local.js';
import { tablesOfSource, type Wanted } from './heap.js';

const local = await startLocalPool({ pools: [{ name: 'shape', size: 1 }] });
process.on(
  'message',
  (wanted: Wanted) => void tablesOfSource(wanted).then((tables) => process.send!(tables)),
);
process.on('disconnect', () => void local.close().finally(() => process.exit()));
process.send!({ baseUrl: local.baseUrl, token: local.token });
