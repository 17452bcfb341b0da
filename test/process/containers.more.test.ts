import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { FakeService, reply, session, type SeenRequest } from '../support/fake-service.js';
import { PlayedBrowser } from '../support/played-browser.js';
import { startProgram, variablesOf, type Program } from '../support/program.js';
import { helpers, programPath } from './support.js';

/** What a container does: its first process has the id 1 in a namespace of its own. Needs root, or a user with namespaces. */
const UNSHARE = ['unshare', '--pid', '--fork', '--mount-proc', '--kill-child'];
const hasNamespaces = spawnSync(UNSHARE[0]!, [...UNSHARE.slice(1), 'true']).status === 0;
const hasTini = spawnSync('tini', ['--version']).status === 0;

const INITS: [name: string, command: string[], canRun: boolean][] = [
  ['no container', [], true],
  ['the first process', UNSHARE, hasNamespaces],
  ['a process of tini', [...UNSHARE, 'tini', '--'], hasNamespaces && hasTini],
];
const STAGES = ['acquire', 'connect', 'callback', 'clean', 'release'] as const;
const SIGNALS = { SIGTERM: 143, SIGINT: 130 } as const;
type Signal = keyof typeof SIGNALS;

let service: FakeService;
let browser: PlayedBrowser;
/** Of each program, which has a token of its own. */
const granted = new Map<string, string[]>();
const releases = new Map<string, number>();
/** What a program waits for at the service. */
const waiting = new Map<string, () => void>();

beforeAll(async () => {
  service = await FakeService.start();
  browser = await PlayedBrowser.start();
  let sessions = 0;
  const programOf = ({ headers }: SeenRequest) => headers.authorization!.replace('Bearer ', '');
  service.script('acquire', (response, request) => {
    const program = programOf(request);
    const session_id = `s${++sessions}`;
    const grant = () => {
      granted.set(program, [...(granted.get(program) ?? []), session_id]);
      const json = session({ session_id, cdp_ws_url: browser.url, tags: request.body?.['tags'] });
      reply(response, { status: 200, json });
    };
    if (program.startsWith('acquire')) waiting.set(program, grant);
    else grant();
  });
  service.script('release', (response, request) => {
    const id = String(request.body?.['session_id']);
    const confirm = () => {
      releases.set(id, (releases.get(id) ?? 0) + 1);
      reply(response, { status: 204 });
    };
    const program = programOf(request);
    if (program.startsWith('release')) waiting.set(program, confirm);
    else confirm();
  });
});

afterAll(async () => {
  await vi.waitFor(() => expect(helpers()).toEqual([]), 45_000);
  await service.close();
  await browser[Symbol.asyncDispose]();
});

function start(init: readonly string[], stage: string, way: string, token: string): Program {
  const [command, ...given] = [...init, process.execPath, programPath('stages'), stage, way] as const;
  const variables = { TMPDIR: process.env['TMPDIR'], ...variablesOf({ baseUrl: service.baseUrl, token }) };
  return startProgram(given, variables, { command });
}

/** A signal to a container goes to its first process. */
function signal({ child: { pid } }: Program, isContainer: boolean, name: NodeJS.Signals): void {
  const target = isContainer ? readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim() : String(pid);
  process.kill(Number(target), name);
}

describe.each(INITS)('as %s', (name, init, canRun) => {
  const isContainer = init.length > 0;
  describe.runIf(canRun)('a program', () => {
    it('ends by a signal as without this library, in each stage of a lease, and its browser is released once', async () => {
      const ends = STAGES.flatMap((stage) => Object.keys(SIGNALS).map((by) => ({ stage, by: by as Signal })));
      const seen = await inParallel(4, ends, async ({ stage, by }) => {
        const token = [stage, name, by].join('-').replaceAll(' ', '-');
        const program = start(init, stage, '', token);
        if (stage === 'acquire' || stage === 'release')
          await vi.waitFor(() => expect([...waiting.keys()]).toContain(token), 30_000);
        else await program.prints(new RegExp(`at ${stage}`));
        signal(program, isContainer, by);
        // The service answers while the program ends.
        setTimeout(() => waiting.get(token)?.(), 300);
        const exit = await program.exit;
        const released = granted.get(token)?.map((id) => releases.get(id));
        return { stage, by, exit, released, stderr: program.stderr };
      });
      const exitBy = (by: Signal) => (isContainer ? [SIGNALS[by], null] : [null, by]);
      expect(seen).toEqual(ends.map((end) => ({ ...end, exit: exitBy(end.by), released: [1], stderr: '' })));
    });

    it('whose own handler takes the signal decides itself, and can lease again', async () => {
      const token = `callback-own-${name.replaceAll(' ', '-')}`;
      const program = start(init, 'callback', 'own', token);
      await program.prints(/at callback/);
      signal(program, isContainer, 'SIGTERM');
      expect(await program.exit).toEqual([5, null]);
      expect(program.stdout).toMatch(/own handler\n.*later\n$/);
      expect(granted.get(token)!.map((id) => releases.get(id))).toEqual([1, 1]);
    });

    it('ends by SIGTERM between two leases', async () => {
      const program = start(init, 'idle', '', `idle-${name.replaceAll(' ', '-')}`);
      await program.prints(/at idle/);
      signal(program, isContainer, 'SIGTERM');
      expect(await program.exit).toEqual(isContainer ? [143, null] : [null, 'SIGTERM']);
    });
  });
});

async function inParallel<T, Result>(
  most: number,
  all: readonly T[],
  work: (one: T) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  let next = 0;
  const run = async () => {
    while (next < all.length) {
      const at = next++;
      results[at] = await work(all[at]!);
    }
  };
  await Promise.all(Array.from({ length: most }, run));
  return results;
}
