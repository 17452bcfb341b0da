// An agent of Stagehand 4 reads a price and buys, in a leased browser. README.md has the commands that run it.
import { localBrowser, Stagehand } from '@browserbasehq/stagehand';
import { z } from 'zod/v4';

const SHOP = `data:text/html,<p>Tea: 3 EUR</p><button onclick="document.title = 'Bought'">Buy</button>`;

// Replaces a real model, so that the example needs no API key: model: { modelName: 'openai/gpt-5.4-mini', apiKey: '…' }
async function generate({ messages, responseFormat }) {
  const asked = JSON.stringify(responseFormat.schema);
  const page = JSON.stringify(messages);
  const element = { elementId: /\[(\d+-\d+)\] button/.exec(page)?.[1], description: 'Buy' };
  let structuredContent = { price: Number(/Tea: (\d+) EUR/.exec(page)?.[1]) };
  if (asked.includes('twoStep'))
    structuredContent = { action: { ...element, method: 'click', arguments: [] }, twoStep: false };
  else if (asked.includes('completed')) structuredContent = { completed: true, progress: 'done' };
  return { role: 'assistant', content: [], outputFormat: 'json_schema', structuredContent };
}

// An address of `pooled-browser proxy` that ends with a name, or that of `exec`.
const cdpUrl = process.argv[2] ?? process.env.BROWSER_POOL_CDP_WS_URL;
const browser = await localBrowser.connect({ cdpUrl });
const stagehand = await Stagehand.create({ browser, model: { generate }, logging: { level: 'off' } });
const [page] = await browser.context.pages();
await page.goto(SHOP);
const { data } = await stagehand.extract('the price of the tea', z.object({ price: z.number() }));
await stagehand.act('click on Buy');
console.log(`Stagehand read ${JSON.stringify(data)} and left the title ${await page.title()}`);
await browser.disconnect(); // not close(): the library releases the browser
process.exit(0);
