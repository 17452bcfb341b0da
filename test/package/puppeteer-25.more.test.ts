import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { useLocalPool } from '../support/local.js';
import { Consumer, pack } from './consumer.js';

const used = useLocalPool();
let consumer: Consumer;

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'package-'));
  consumer = await Consumer.install(join(folder, 'app'), await pack(folder), ['puppeteer-core@25']);
});

it.each(['cdp', 'bidi'])(
  'the installed package drives a browser with puppeteer-core 25 over %s',
  async (protocol) => {
    const { baseUrl, token } = used.local;
    const program = `
    import { createRequire } from 'node:module';
    import { BrowserPool } from 'pooled-browser';
    import { withPooledBrowser } from 'pooled-browser/puppeteer';
    const pool = new BrowserPool('test', { baseUrl: '${baseUrl}', token: '${token}' });
    const { value, released } = await withPooledBrowser(
      pool,
      async ({ page }) => {
        await page.goto('data:text/html,<title>twenty-five</title>');
        return page.title();
      },
      { protocol: '${protocol}' },
    );
    await pool.close();
    const { version } = createRequire(import.meta.url)('puppeteer-core/package.json');
    console.log(version.split('.')[0], value, released);
  `;
    expect(await consumer.run(`${protocol}.mjs`, program)).toBe('25 twenty-five reused');
  },
);
