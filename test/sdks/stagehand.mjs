/**
 * A program with Stagehand 4 and a scripted model: it opens a page, reads a price from it, and clicks on a button.
 *
 * node --experimental-websocket test/sdks/stagehand.mjs [CDP URL]
 */
import { createServer } from 'node:http';
import { localBrowser, Stagehand } from '@browserbasehq/stagehand';
import { z } from 'zod/v4';

const PAGE = `<title>Shop</title><p>Tea: 3 EUR</p><button onclick="document.title = 'Bought'">Buy</button>`;
const site = createServer((_request, response) => response.setHeader('content-type', 'text/html').end(PAGE));
await new Promise((resolve) => site.listen(0, '127.0.0.1', resolve));

/** Answers each request for a schema. The id of the button is in the tree of the page that Stagehand sends. */
async function generate({ messages, responseFormat }) {
  const asked = JSON.stringify(responseFormat.schema);
  const elementId = /\[(\d+-\d+)\] button/.exec(JSON.stringify(messages))?.[1];
  const action = { elementId, description: 'Buy', method: 'click', arguments: [] };
  let structuredContent = { price: 3 };
  if (asked.includes('twoStep')) structuredContent = { action, twoStep: false };
  else if (asked.includes('completed')) structuredContent = { completed: true, progress: 'done' };
  return { role: 'assistant', content: [], outputFormat: 'json_schema', structuredContent };
}

const cdpUrl = process.argv[2] ?? process.env.BROWSER_POOL_CDP_WS_URL;
const browser = await localBrowser.connect({ cdpUrl });
const stagehand = await Stagehand.create({ browser, model: { generate }, logging: { level: 'off' } });
const [page] = await browser.context.pages();
await page.goto(`http://127.0.0.1:${site.address().port}/`);
const { data } = await stagehand.extract('the price of the tea', z.object({ price: z.number() }));
await stagehand.act('click on Buy');
console.log(`Stagehand read ${JSON.stringify(data)} and left the title ${await page.title()}`);
await browser.disconnect();
process.exit(0);
