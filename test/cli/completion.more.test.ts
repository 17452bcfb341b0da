import { spawnSync } from 'node:child_process';
import { mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { runHere } from './support.js';

const hasBash = spawnSync('bash', ['--version']).status === 0;

/** The part of the package bash-completion that the script calls. */
const BASH_COMPLETION = `_get_comp_words_by_ref() { cur=\${COMP_WORDS[COMP_CWORD]}; words=("\${COMP_WORDS[@]}"); }`;

/** What bash offers for the last of these words. */
function completionsOf(words: readonly string[]): string[] {
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
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    __pooled_browser_complete || true
    printf '%s\\n' "\${COMPREPLY[@]}"`,
  );
  const env = { ...process.env, PATH: `${folder}:${process.env['PATH']}` };
  const { stdout, stderr, status } = spawnSync('bash', [file, 'pooled-browser', ...words], {
    env,
    encoding: 'utf8',
  });
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
  return stdout.split('\n').filter(Boolean);
}

it.runIf(hasBash)(
  'completes commands, options and their values in bash, and leaves names of files to bash',
  () => {
    expect(completionsOf(['ex'])).toEqual(['exec']);
    expect(completionsOf(['exec', 'pool', '--rel'])).toEqual(['--release-on-crash', '--release']);
    expect(completionsOf(['exec', 'pool', '--release', ''])).toEqual(['destroy', 'reuse']);
    expect(completionsOf(['map', 'pool', ''])).toEqual([]);
  },
);

it.each(['bash', 'zsh', 'fish', 'powershell'])('prints a script for %s', async (shell) => {
  const { code, stdout, stderr } = await runHere(['completion', shell]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain(`# ${shell} completion for pooled-browser`);
});
