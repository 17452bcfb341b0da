import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FakeService, found, reply, session, type SeenRequest } from '../support/fake-service.js';
import { PlayedBrowser } from '../support/played-browser.js';
import { kill } from '../support/processes.js';
import { variablesOf, type Program } from '../support/program.js';
import { helpers, start } from './support.js';

let service: FakeService;
let browser: PlayedBrowser;

beforeEach(async () => {
  service = await FakeService.start();
  browser = await PlayedBrowser.start();
  let sessions = 0;
  service.script('acquire', (response, { body }) => {
    reply(response, { status: 200, json: granted(`session-${++sessions}`, body) });
  });
});

afterEach(async () => {
  await expect.poll(helpers).toEqual([]);
  await service.close();
  await browser[Symbol.asyncDispose]();
});

const granted = (session_id: string, body?: Record<string, unknown>) =>
  session({ session_id, cdp_ws_url: browser.url, tags: body?.['tags'] });
const run = (way: string, ...args: string[]): Program =>
  start('ending', [way, ...args], variablesOf(service.options));
const released = () => service.released.map(String).toSorted((a, b) => a.localeCompare(b));
const expectReleased = async (...ids: string[]) => {
  await expect.poll(released).toEqual(ids);
};

/** Ends a program by a signal, or by a line on its stdin. */
const end = ({ child }: Program, how: string) =>
  how.startsWith('SIG') ? child.kill(how as NodeJS.Signals) : child.stdin!.write(how);

it.each([
  ['SIGTERM', 'worker', 'SIGTERM'],
  ['SIGKILL', 'worker', 'SIGKILL'],
  ['worker.terminate()', 'worker', 'terminate'],
  ['process.exit() in the main thread', 'worker', 'exit'],
  ['an uncaught exception in the thread', 'worker-throw', ''],
])('a lease in a worker thread is released once after %s', async (_end, way, how) => {
  const program = run(way);
  if (how) {
    await program.prints(/leased/);
    end(program, how);
  }
  if (how.startsWith('SIG')) expect(await program.exit).toEqual([null, how]);
  await expectReleased('session-1');
});

describe('an acquire request that is open when the process ends', () => {
  it('is awaited after SIGTERM, and its browser is released', async () => {
    service.script('acquire', (response) => {
      program.child.kill('SIGTERM');
      reply(response, { status: 200, json: granted('late'), delay: 700 });
    });
    const program = run('acquiring');
    expect(await program.exit).toEqual([null, 'SIGTERM']);
    await expectReleased('late');
    expect(service.of('acquire')).toHaveLength(1);
  });

  it('is not repeated after SIGTERM if the pool has no browser', async () => {
    service.script('acquire', (response) => {
      program.child.kill('SIGTERM');
      reply(response, { status: 204, delay: 1000 });
    });
    const program = run('acquiring');
    expect(await program.exit).toEqual([null, 'SIGTERM']);
    expect(service.of('acquire')).toHaveLength(1);
  });

  it.each([
    ['process.exit()', 'exit-acquiring', 'exit'],
    ['SIGTERM without a response within 2 s', 'acquiring', 'SIGTERM'],
    ['SIGKILL with releaseOnCrash', 'guarded-acquiring', 'SIGKILL'],
    ['SIGKILL in a worker thread', 'worker-acquiring', 'SIGKILL'],
  ])('is searched for by another process at %s', async (_end, way, how) => {
    const acquired = new Promise<void>((resolve) => service.script('acquire', () => resolve()));
    service.script('search', found('found'));
    const program = run(way);
    await acquired;
    end(program, how);
    expect(await program.exit).toEqual(how === 'exit' ? [7, null] : [null, how]);
    await expectReleased('found');
    if (how !== 'SIGKILL') expect(program.stdout).toContain('outcome-unknown');
  });

  it('is searched for once more after the end of the process, which closes the connection', async () => {
    const acquired = new Promise<void>((resolve) =>
      service.script('acquire', (response) => {
        resolve();
        response.on('close', () => (isClosed = true));
      }),
    );
    let isClosed = false;
    service.script('search', (response, request) => found(...(isClosed ? ['found'] : []))(response, request));
    const program = run('exit-acquiring');
    await acquired;
    program.child.stdin!.write('exit');
    expect(await program.exit).toEqual([7, null]);
    await expectReleased('found');
  });
});

describe('a token that lives 4 s', () => {
  const numberOf = ({ headers }: SeenRequest): number =>
    JSON.parse(Buffer.from(headers.authorization!.split('.')[1]!, 'base64url').toString()).number;

  it.each([
    ['the guard after SIGKILL', 'guarded-tokens', 'SIGKILL'],
    ['the process that a process at exit starts', 'tokens-exit', 'exit'],
  ])('is renewed in time for %s, without a busy loop', async (_who, way, how) => {
    const program = run(way, '1');
    await program.prints(/token 3/);
    end(program, how);
    await program.ended;
    await expectReleased('session-1');
    expect(numberOf(service.of('release')[0]!)).toBeGreaterThanOrEqual(3);
    expect(numberOf(service.of('release')[0]!)).toBeLessThan(10);
  });
});

describe('a guard', () => {
  it('receives each token that the client fetches', async () => {
    const program = run('guarded-opaque');
    await program.prints(/leased/);
    program.child.kill('SIGKILL');
    await expectReleased('session-1', 'session-2');
    for (const { headers } of service.of('release')) expect(headers.authorization).toBe('Bearer token-2');
  });

  it('is replaced with all its leases when it dies', async () => {
    const program = run('guarded', '2');
    await program.prints(/leased/);
    for (let deaths = 0; deaths < 2; deaths++) {
      const [guard] = helpers();
      kill(guard!);
      await expect.poll(() => helpers().filter(({ pid }) => pid !== guard!.pid).length).toBe(1);
      // A guard can run before the program has sent it what it must release.
      end(program, `death ${deaths}\n`);
      await program.prints(new RegExp(`death ${deaths}`));
    }
    program.child.kill('SIGKILL');
    await program.ended;
    await expectReleased('session-1', 'session-2');
  });

  it('that dies just before the exit does not prevent the release', async () => {
    const program = run('guarded-exit');
    await program.prints(/leased/);
    const [guard] = helpers();
    process.kill(program.child.pid!, 'SIGSTOP');
    kill(guard!);
    program.child.stdin!.write('exit');
    process.kill(program.child.pid!, 'SIGCONT');
    expect(await program.exit).toEqual([7, null]);
    await expectReleased('session-1');
  });

  it('also watches a browser that no caller received, until it is released', async () => {
    service.script('acquire', async (response, { body }) => {
      program.child.stdin!.write('abort');
      await program.prints(/aborted/);
      reply(response, { status: 200, json: granted('orphan', body) });
    });
    service.script(
      'release',
      () => void program.child.kill('SIGKILL'),
      (response) => reply(response, { status: 204 }),
    );
    service.script('session', (response) => {
      const { tags } = service.of('acquire')[0]!.body!;
      reply(response, { status: 200, json: granted('orphan', { tags }) });
    });
    const program = run('guarded-abort');
    await program.ended;
    await expect.poll(() => service.released.length).toBe(2);
  });

  it.each([
    ['process.exit()', 'guarded-exit', 7],
    ['an uncaught exception', 'guarded-throw', 1],
    ['process.exit() with leases that have no guard', 'mixed-exit', 7],
  ])('releases alone, and each browser once, at %s', async (_end, way, code) => {
    // A service that needs a second would receive the requests of two processes.
    service.script('release', (response) => reply(response, { status: 204, delay: 1000 }));
    const program = run(way);
    if (way === 'guarded-exit') program.child.stdin!.write('exit');
    expect(await program.exit).toEqual([code, null]);
    await expect.poll(helpers).toEqual([]);
    const ids = way === 'mixed-exit' ? ['session-1', 'session-2'] : ['session-1'];
    expect(released()).toEqual(ids);
  });
});

it('a process that exits passes on more leases than a pipe takes at once', async () => {
  const program = run('exit', '400');
  expect(await program.exit).toEqual([7, null]);
  await expect.poll(() => new Set(service.released).size).toBe(400);
  expect(service.released).toHaveLength(400);
});

it.each([
  ['a missing program, at exit', 'exit', '/none'],
  ['a program that is not Node, at exit', 'exit', '/bin/false'],
  ['a missing program, during the lease', 'guarded', '/none'],
  ['a program that is not Node, during the lease', 'guarded', '/bin/false'],
])('a helper process that can not start is reported once: %s', async (_what, way, execPath) => {
  const program = run(way, execPath, '2');
  await program.prints(/stay leased until their inactivity timeout/);
  program.child.kill();
  await program.ended;
  expect(program.stderr.match(/stay leased/g)).toHaveLength(1);
});
