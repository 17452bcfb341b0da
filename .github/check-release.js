/** Fails if package.json is not ready to be published from this repository, for the tag that is being released. */
import { readFileSync } from 'node:fs';

const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const { GITHUB_REPOSITORY: repository, GITHUB_REF_NAME: tag } = process.env;

const faults = ['author', 'repository', 'homepage', 'bugs']
  .filter((field) => !manifest[field])
  .map((field) => `package.json has no ${field}. See .github/CONTRIBUTING.md.`);
const address = manifest.repository?.url ?? manifest.repository ?? '';
if (address && !address.replace(/\.git$/, '').endsWith(`/${repository}`))
  faults.push(`The repository in package.json is ${address}, not ${repository}.`);
if (tag !== `v${manifest.version}`) faults.push(`The tag is ${tag}, the version ${manifest.version}.`);

for (const fault of faults) console.error(fault);
process.exit(faults.length > 0 ? 1 : 0);
