import { script } from '@bomb.sh/tab';
import tab from '@bomb.sh/tab/commander';
import { Argument, type Command } from 'commander';

const NAME = 'pooled-browser';
const SHELLS = ['bash', 'zsh', 'fish', 'powershell'];

export function define(command: Command): void {
  command
    .description('Prints the script with which a shell completes commands, options and their values.')
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .addHelpText('after', HELP)
    .action((shell: string) => void process.stdout.write(`${scriptFor(shell)}\n`));
}

const HELP = `
The program must be on the PATH (npm install --global pooled-browser). bash needs the package
bash-completion.

Examples:
  $ pooled-browser completion bash >> ~/.bashrc
  $ pooled-browser completion zsh > "\${fpath[1]}/_pooled-browser"
  $ pooled-browser completion fish > ~/.config/fish/completions/pooled-browser.fish`;

function scriptFor(shell: string): string {
  const text = printed(() => script(shell, NAME, NAME));
  if (shell !== 'bash') return text;
  // A second program with the same library, or a second `source ~/.bashrc`, would fail to set its constants.
  const repeatable = text.replaceAll(/^readonly /gm, '');
  // Without this option, bash completes no file names.
  return repeatable.replace(/^complete -F /m, 'complete -o default -F ');
}

/** Adds the command `complete`, which the script of a shell calls, to a program with all its commands and options. */
export function addComplete(program: Command): void {
  for (const command of program.commands) command.description(command.summary());
  const root = tab(program, { completionCommandName: 'completion' });
  const complete = root.parse.bind(root);
  root.parse = (words) => {
    const found = printed(() => complete(words));
    // The last line lets no file name be completed, though many arguments are files.
    process.stdout.write(`${found.includes('\n') ? found : ':0'}\n`);
  };
}

/** Returns what a function writes with `console.log`, the only output of the library. */
function printed(run: () => void): string {
  const { log } = console;
  const lines: string[] = [];
  console.log = (line: string) => void lines.push(line);
  try {
    run();
  } finally {
    console.log = log;
  }
  return lines.join('\n');
}
