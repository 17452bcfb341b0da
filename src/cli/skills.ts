import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { closestMatch } from 'leven';
import { packageFile } from '../shared/package-file.js';
import { CliError, EXIT } from './errors.js';
import { formatTable, note } from './terminal.js';

/** The guides of the package. A folder stands for its README.md. */
const TOPICS: readonly (readonly [name: string, path: string, about: string])[] = [
  ['overview', 'README.md', 'what the library does, and how to begin'],
  ['agent-runtimes', 'examples/guides/agent-runtimes.md', 'which call fits an agent; long leases, MCP'],
  ['scraping-jobs', 'examples/guides/scraping-jobs.md', 'many inputs on few browsers: mapPooledBrowsers'],
  ['test-suites', 'examples/guides/test-suites.md', 'fixtures of Playwright Test and Vitest'],
  ['python', 'examples/python', 'programs in Python and other languages: exec, proxy'],
  ['mcp', 'examples/mcp', 'MCP servers that lease a browser at the first tool call'],
  ['mcp-lease', 'examples/mcp-lease', 'an agent that leases and releases browsers with MCP tools'],
  ['openai-agents', 'examples/openai-agents', 'the same with the OpenAI Agents SDK'],
  ['stagehand', 'examples/stagehand', 'Stagehand 4 on a leased browser'],
  ['browser-use', 'examples/browser-use', 'browser-use on a leased browser'],
  ['agent-browser', 'examples/agent-browser', 'agent-browser on a leased browser'],
  ['replays', 'examples/guides/replays.md', 'a video and timeline of every lease'],
  ['handoff', 'examples/guides/handoff.md', 'a person takes over the browser, for a login or a captcha'],
  ['release', 'examples/guides/release.md', 'what is cleaned, destroyed or left at the end of a lease'],
  ['proxy', 'examples/guides/proxy.md', 'browsers by URL: names, a debugging port, Playwright clients'],
  ['local-pool', 'examples/guides/local-pool.md', 'browsers of this machine: windows, flags, recordings'],
  ['firefox', 'examples/guides/firefox.md', 'Firefox with Puppeteer over WebDriver BiDi'],
  ['log-in-once', 'examples/guides/log-in-once.md', 'keep a login as a file, and use it in later leases'],
  ['downloads', 'examples/guides/downloads.md', 'downloads and uploads of a browser on another machine'],
  ['localhost', 'examples/localhost', 'a remote browser reaches an app of this machine: exposeNetwork'],
  ['allowed-hosts', 'examples/allowed-hosts', 'a browser that reaches only the hosts that you name'],
  ['polite-jobs', 'examples/guides/polite-jobs.md', 'limits for each host'],
  ['several-services', 'examples/guides/several-services.md', 'the next service if one is down or full'],
  ['many-machines', 'examples/many-machines', 'a queue in Redis, and workers'],
  ['own-service', 'examples/own-service', 'the adapter of your own browser service'],
  ['agent-session', 'examples/agent-session', 'a lease that moves to another process'],
  ['ai-agent', 'examples/ai-agent', 'a browser as a tool of the AI SDK'],
  ['crawlee', 'examples/crawlee', 'a Crawlee crawler on leased browsers'],
  ['playwright-test', 'examples/playwright-test', 'an existing suite of Playwright Test'],
  ['vitest', 'examples/vitest', 'an existing suite of Vitest'],
  ['jest', 'examples/jest', 'Jest: one lease for a file of tests'],
  ['node-test', 'examples/node-test', 'the same with node:test'],
  ['opentelemetry', 'examples/opentelemetry', 'a span of each stage of a lease'],
  ['other-library', 'examples/other-library', 'a connector for a third automation library'],
  ['from-launch', 'examples/guides/from-launch.md', 'replace chromium.launch()'],
  ['from-puppeteer-cluster', 'examples/guides/from-puppeteer-cluster.md', 'replace puppeteer-cluster'],
  ['from-an-sdk', 'examples/guides/from-an-sdk.md', 'replace the SDK of a service'],
  ['questions', 'examples/questions.md', 'CI, Docker, CommonJS, proxies, Bun and Deno'],
  ['services', 'examples/services.md', 'services: their variables, limits and requests; proxies'],
  ['reference', 'examples/reference.md', 'all functions, options, results, errors and events'],
  ['compatibility', 'examples/compatibility.md', 'versions and runtimes that were run'],
  ['costs', 'examples/costs.md', 'time, memory and processor time of a lease'],
  ['benchmarks', 'examples/benchmarks.md', 'the figures behind costs, and the commands that measure them'],
  [
    'guarantees',
    'examples/guarantees.md',
    'how we know: tests, faults, fuzzing, mutations, suites of others',
  ],
  ['alternatives', 'examples/alternatives.md', 'when something else is better'],
  ['examples', 'examples', 'the list of all examples'],
];

export function define(command: Command): void {
  command
    .description('Prints the guides of the installed version, for agents and people.')
    .argument('[topic]', 'name of a guide; without it, all topics are listed')
    .addHelpText('after', HELP)
    .action(async (topic: string | undefined) => {
      process.stdout.write(
        topic === undefined
          ? `${formatTable(TOPICS.map(([name, , about]) => [name, about])).join('\n')}\n`
          : await guideOf(topic),
      );
    });
}

const HELP = `
The guides are Markdown, on stdout. The path of the file, from which its links start, is on stderr.
The package also has a skill in the format of Agent Skills, for an agent that works in your project:

  $ cp -r node_modules/pooled-browser/skills/pooled-browser .claude/skills/

Examples:
  $ pooled-browser skills
  $ pooled-browser skills python`;

async function guideOf(topic: string): Promise<string> {
  const found = TOPICS.find(([name]) => name === topic);
  if (!found) {
    const nearest = closestMatch(
      topic,
      TOPICS.map(([name]) => name),
    )!;
    const advice = `Did you mean ${nearest}? All topics: pooled-browser skills`;
    throw new CliError(`There is no topic ${topic}. ${advice}`, EXIT.usage);
  }
  const path = found[1].endsWith('.md') ? found[1] : `${found[1]}/README.md`;
  const file = packageFile(path);
  const text = file === undefined ? undefined : await readFile(file, 'utf8').catch(() => undefined);
  if (text === undefined) {
    const advice = 'Install the package pooled-browser again: npm install pooled-browser.';
    throw new CliError(`The guide ${path} is not in the installed package. ${advice}`);
  }
  note(`The file of this guide is ${file}.`);
  return text;
}
