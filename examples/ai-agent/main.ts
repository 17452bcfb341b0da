/** An agent of the AI SDK with a leased browser as its tool. */
import { generateText, stepCountIs } from 'ai';
import { BrowserPool } from 'pooled-browser';
import { startLocalPool } from 'pooled-browser/local';
import { leaseBrowser } from 'pooled-browser/playwright';
import { readPageTool } from './browser-tool.js';
import { scriptedModel } from './scripted-model.js';

const url = process.argv[2] ?? 'data:text/html,<title>Opening hours</title>Open from 9 to 5.';

// Uses the service that the environment names, or else starts a local pool.
await using local = process.env.BROWSER_POOL_BASE_URL ? undefined : await startLocalPool();
await using pool = new BrowserPool('default', { baseUrl: local?.baseUrl, token: local?.token });

// The lease survives a lost connection: a model may think for longer than a WebSocket stays open.
const lease = await leaseBrowser(pool, { name: `agent-${process.pid}`, reconnect: 'eager' });
try {
  // For people only: this link gives control of the browser, so the model does not receive it.
  console.log(`Watch it live: ${lease.liveViewUrl ?? 'not possible, the browser is headless'}`);
  const { text, steps } = await generateText({
    model: scriptedModel(url),
    tools: { readPage: readPageTool(lease) },
    stopWhen: stepCountIs(5),
    prompt: `What does ${url} say?`,
    abortSignal: lease.signal,
  });
  console.log(`The agent said, after ${steps.length} steps: ${text}`);
} finally {
  const { replays, released } = await lease.release();
  for (const { replay_view_url: link } of replays) console.log(`Replay: ${link}`);
  if (replays.length === 0) console.log('Replay: none, nothing was recorded');
  console.log(`The browser was ${released}.`);
}
