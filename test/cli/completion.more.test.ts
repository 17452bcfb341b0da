import { spawnSync } from 'node:child_process';
import { mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { runHere } from './support.js';

const hasBash = spawnSync('bash', ['--version']).status === 0;

/** The part of the package bash-completion that the script calls. */
const BASH_COMPLETION = `_get_comp_words_by_ref() { cur=\${COMP_WORDS[COMP_CWORD]}; words=("\${COMP_WORDS[@]}"); }`;

/** The words before the cursor, and what bash offers. */
const OFFERS: readonly (readonly [words: string, offered: string])[] = [
  ['ex', 'exec'],
  ['exec pool --rel', '--release --release-on-crash'],
  ["exec pool --release ''", 'auto reuse destroy'],
  ["map pool ''", ''],
];

it.runIf(hasBash)(
  'completes commands, options and their values in bash, and leaves names of files to bash',
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'completion-'));
    symlinkSync(resolve('dist/cli/main.js'), join(folder, 'pooled-browser'));
    const file = join(folder, 'completion.sh');
    writeFileSync(
      file,
      `set -e
      ${BASH_COMPLETION}
      compopt() { :; }
      for time in first second; do source <(pooled-browser completion bash); done
      complete -p pooled-browser | grep -q -e '-o default'
      offer() {
        COMP_WORDS=(pooled-browser "$@") COMP_CWORD=$# COMPREPLY=()
        __pooled_browser_complete || true
        echo "\${COMPREPLY[*]}"
      }
      ${OFFERS.map(([words]) => `offer ${words}`).join('\n')}`,
    );
    const env = { ...process.env, PATH: `${folder}:${process.env['PATH']}` };
    const { stdout, stderr, status } = spawnSync('bash', [file], { env, encoding: 'utf8' });
    expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
    expect(stdout).toBe(OFFERS.map(([, offered]) => `${offered}\n`).join(''));
  },
);

it.each(['bash', 'zsh', 'fish', 'powershell'])('prints a script for %s', async (shell) => {
  const { code, stdout, stderr } = await runHere(['completion', shell]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain(`# ${shell} completion for pooled-browser`);
});
