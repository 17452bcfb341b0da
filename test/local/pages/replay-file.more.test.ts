import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it } from 'vitest';
import { Replays } from '../replays/support.js';
import { drive, startApi } from '../support.js';
import { faults, violations, usePerson } from './support.js';

// A space and a `#` must be escaped in a URL.
const parent = mkdtempSync(join(tmpdir(), 'kept # '));
const folder = join(parent, 'recordings');
afterAll(() => rmSync(parent, { recursive: true }));
const person = usePerson();

const HOSTILE = '</script><script>document.title = "replaced"</script><!--';

it('plays a recording and shows its timeline from the disk, while it is written and after its pool has closed', async () => {
  const api = await startApi({ pools: [{ viewport: { width: 640, height: 480 } }], recording: { folder } });
  const replays = new Replays(api);
  const session = await api.lease({ name: 'cart.spec' });
  const id = await replays.start(session);
  const { replay_view_url: link } = await replays.find(session, id);
  expect(dirname(dirname(fileURLToPath(link!)))).toBe(folder);
  const early = await person.open(link!);
  await early.getByRole('heading', { name: 'Still recording' }).waitFor();
  await drive(session, async (page) => {
    await page.goto('data:text/html,<title>Cart</title><h1>Cart</h1>');
    await page.evaluate((text) => console.warn(text), HOSTILE);
    await page.waitForTimeout(2_000);
  });
  await replays.stop(session, id);
  await early.getByLabel('Video of the session').waitFor();
  // Pages of the pool cannot open files.
  const dashboard = await person.open(api.pool.dashboardUrl);
  const shown = await dashboard
    .getByRole('link', { name: 'Open the replay of cart.spec' })
    .getAttribute('href');
  expect(shown).toMatch(/^http:/);
  await api.pool.close();

  const page = await person.open(link!);
  await expect.poll(() => page.title()).toBe('cart.spec · Replay');
  await page.getByRole('link', { name: /Navigation data:text\/html/ }).waitFor();
  await page.getByRole('link', { name: HOSTILE }).waitFor();
  await page.getByRole('button', { name: 'Play' }).click();
  const video = page.locator('video');
  const at = () => video.evaluate((element) => (element as HTMLVideoElement).currentTime);
  await expect.poll(at).toBeGreaterThan(0.1);
  await page.keyboard.press(' ');
  await page.keyboard.press('Home');
  await expect.poll(at).toBe(0);
  expect(await page.getByRole('link', { name: 'Video file' }).getAttribute('href')).toBe('video.webm');
  expect(await violations(page)).toEqual([]);
  expect(faults(page)).toEqual([]);
});
