// An agent of the OpenAI Agents SDK leases a browser with the tools of `pooled-browser mcp`, reads a page, and releases the browser.
// README.md has the two commands that run it.
import { Agent, MCPServerStdio, run, setTracingDisabled, tool, Usage } from '@openai/agents';
import { chromium } from 'playwright-core';
import { z } from 'zod';

const [command, url] = process.argv.slice(2);
setTracingDisabled(true);

const readPage = tool({
  name: 'read_page',
  description: 'Opens a web page in a leased browser and returns its title.',
  parameters: z.object({ cdpUrl: z.string(), url: z.string() }),
  async execute({ cdpUrl, url }) {
    const browser = await chromium.connectOverCDP(cdpUrl);
    const page = browser.contexts()[0].pages()[0];
    await page.goto(url);
    const title = await page.title();
    await browser.close();
    return title;
  },
});

// Replaces a real model, so that the example needs no API key. Leave `model` out to use one of OpenAI.
const calls = [
  () => ['lease_browser', { name: 'main', lifetime: '5m' }],
  (results) => ['read_page', { cdpUrl: JSON.parse(results[0]).cdpUrl, url }],
  () => ['release_browser', { name: 'main' }],
];
const model = {
  async getResponse({ input }) {
    const results = input.filter(({ type }) => type === 'function_call_result').map(textOf);
    const [name, given] = calls[results.length]?.(results) ?? [];
    const output = name
      ? { type: 'function_call', callId: name, name, status: 'completed', arguments: JSON.stringify(given) }
      : { type: 'message', role: 'assistant', status: 'completed', content: [answer(results)] };
    return { usage: new Usage(), output: [output] };
  },
};
const textOf = ({ output }) => [output].flat()[0].text ?? output;
const answer = ([, title, released]) => {
  const text = `The page is called "${title}". The browser was ${JSON.parse(released).released}.`;
  return { type: 'output_text', text };
};

const browsers = new MCPServerStdio({
  command: process.execPath,
  args: [command, 'mcp', 'default'],
  env: process.env,
  // While no browser is free, lease_browser waits for one.
  clientSessionTimeoutSeconds: 60,
});
await browsers.connect();
try {
  const agent = new Agent({ name: 'Reader', model, tools: [readPage], mcpServers: [browsers] });
  console.log((await run(agent, `What is the title of ${url}?`)).finalOutput);
} finally {
  await browsers.close();
}
