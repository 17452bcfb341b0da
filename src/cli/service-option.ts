import type { Command } from 'commander';

/** What every command that talks to a service takes. The token is no option: everyone could read it there. */
export interface ServiceOptions {
  baseUrl?: string;
}

export function addServiceOption(command: Command): Command {
  return command.option('--base-url <url>', 'address of the service (default: BROWSER_POOL_BASE_URL)');
}

export const ABOUT_TOKEN = `
The access token is read from the environment variable BROWSER_POOL_ACCESS_TOKEN, and only from
there: every user of a machine can read the arguments of its processes.`;
