import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { Queue } from 'bullmq';
import { beforeEach, expect, it, vi } from 'vitest';
import { collectOutcomes, enqueueInputs } from '../../src/bullmq.js';
import { Site } from '../support/site.js';
import { processesOf } from '../support/processes.js';
import { describeWithRedis } from '../support/redis.js';
import { TestRedis } from '../support/redis-server.js';
import { ASKS, inOrder, Jobs, LIBRARY, parse } from './jobs.js';
import { SLOW_START } from '../support/program.js';
import { expectRefusal, startClient } from './support.js';

const PASSWORD = 'canary-password-123';
const QUEUE = ['--queue', 'titles'];

describeWithRedis('map --queue and work', () => {
  const jobs = new Jobs(3);
  const { script, inputs, results } = jobs;
  let redis: TestRedis;

  beforeEach(async () => {
    redis = await TestRedis.start({ password: PASSWORD });
    vi.stubEnv('REDIS_URL', redis.url);
    return () => redis[Symbol.asyncDispose]();
  });

  const map = (task: string, ...words: string[]) => jobs.map([script(task), ...words, ...QUEUE]);
  const run = (task: string, ...words: string[]) => jobs.run([script(task), ...words, ...QUEUE]);

  /** Ends the locks of a killed process at once, as their expiry would do after up to 30 s. */
  async function expireLocks(): Promise<void> {
    const client = await redis.connect();
    const keys = await client.keys('bull:titles:*');
    const locks = keys.filter((key) => /:(lock|stalled-check|pooled-browser:collector)$/.test(key));
    expect(locks).toContain('bull:titles:pooled-browser:collector');
    await client.del(...locks);
    client.disconnect();
  }

  it('share the inputs, also after Ctrl-C in a worker, and print every result once, without the password', async () => {
    const held: ServerResponse[] = [];
    let rounds = 0;
    const answerAll = () => held.splice(0).forEach((response) => response.end('answer'));
    // Holds the responses until both processes run tasks, twice: otherwise one process could finish all inputs.
    await using site = await Site.open((_request, response) => {
      if (held.push(response) === 3 && ++rounds === 1) answerAll();
    });
    const urls = Array.from({ length: 24 }, (_, index) => `${site.url}/${index}`);
    const words = ['work', 'test', ...LIBRARY, script(ASKS), ...QUEUE, '--concurrency', '1'];
    const worker = startClient(words, jobs.local);
    await worker.prints(/Working for the queue titles/);
    const running = map(ASKS, inputs(...urls), '--concurrency', '2');
    await expect.poll(() => rounds, SLOW_START).toBe(2);
    const visible = [running, worker].flatMap(({ folder }) =>
      processesOf(folder).map(({ command }) => command),
    );
    const work = await worker.end('SIGINT');
    expect(work.code).toBe(0);
    expect(work.stderr).toContain('Returning the running tasks to the queue');
    expect(work.stderr).toMatch(/Finished [1-9]\d* inputs?, of which 0 failed/);
    const again = setInterval(answerAll, 50);
    const { code, stdout, stderr } = await running.ended.finally(() => clearInterval(again));
    expect(code).toBe(0);
    expect(stderr).toMatch(/^pooled-browser: Finished: 24 succeeded, 0 failed, in [\d.]+ s\.\n$/m);
    expect(inOrder(parse(stdout)).map(({ index, input, value }) => [index, input, value])).toEqual(
      urls.map((input, index) => [index, input, 'answer']),
    );
    expect([stderr, work.stderr, ...visible].join('\n')).not.toContain(PASSWORD);
    expect(jobs.leased).toBe(0);
  });

  it('prints the results of its own inputs, and leaves and names those of other lists and programs', async () => {
    const task = 'export default ({ input }) => input;';
    const queue = new Queue('titles', {
      connection: { host: '127.0.0.1', port: redis.port, password: PASSWORD },
    });
    try {
      await queue.add(
        'shaped',
        { index: 0, input: 'of another program', list: 'default' },
        { jobId: 'shaped' },
      );
      await enqueueInputs('titles', ['of another list'], { connection: redis.url, list: 'other' });
      const { code, stdout, stderr } = await map(task, inputs('first', 'second')).ended;
      expect(code, stderr).toBe(0);
      expect(inOrder(parse(stdout)).map(({ input }) => input)).toEqual(['first', 'second']);
      expect(stderr).toContain('The job shaped of the queue titles was not added by enqueueInputs');
      expect(stderr).toMatch(
        /The job other-0-\S+ of the queue titles is of the list other: its result is not collected/,
      );
      const others: object[] = [];
      for await (const outcome of collectOutcomes('titles', { connection: redis.url })) others.push(outcome);
      expect(others).toMatchObject([{ list: 'other', input: 'of another list', status: 'fulfilled' }]);
    } finally {
      await queue.close();
    }
  });

  it('continue a collector that was killed or interrupted, with --resume', async () => {
    const count = () => (existsSync(jobs.out) ? results().length : 0);
    let answered = 0;
    // The first run gets a part of the answers.
    let most = 4;
    await using site = await Site.open((_request, response) => {
      if (answered < most) response.end(`answer ${++answered}`);
    });
    const words = [
      inputs(...Array.from({ length: 12 }, (_, index) => `${site.url}/${index}`)),
      '--out',
      jobs.out,
    ];
    const first = map(ASKS, ...words);
    await expect.poll(count, SLOW_START).toBe(4);
    await first.end('SIGKILL');
    await expireLocks();
    most = 8;
    const second = map(ASKS, ...words, '--resume');
    await expect.poll(count, SLOW_START).toBe(8);
    const interrupted = await second.end('SIGINT');
    expect(interrupted.code).toBe(130);
    expect(interrupted.stderr).toMatch(/To continue, add --resume to the same command/);
    most = 1000;
    const third = await map(ASKS, ...words, '--resume').ended;
    expect(third.code).toBe(0);
    expect(third.stderr).toMatch(/Finished: 4 succeeded, 0 failed, 8 skipped/);
    expect(inOrder(results()).map(({ index, status }) => [index, status])).toEqual(
      Array.from({ length: 12 }, (_, index) => [index, 'fulfilled']),
    );
  });

  it('run failed inputs again with --resume, and leave one result of each, also as CSV', async () => {
    const table = join(jobs.folder, 'numbers.csv');
    const words = [inputs('1', '2', '3'), '--out', table, '--format', 'csv'];
    const fails =
      "export default ({ input }) => { if (input === '2') throw new Error('broken'); return input; };";
    const first = await run(fails, ...words, '--retries', '1');
    expect(first.code).toBe(1);
    expect(first.stderr).toMatch(/1 × Error: broken/);
    const [, failed] = inOrder(results(`${table}.jsonl`));
    expect(failed).toMatchObject({ status: 'rejected', attempts: 2, reason: { message: 'broken' } });
    expect((await run('export default ({ input }) => input;', ...words, '--resume')).code).toBe(0);
    expect(inOrder(results(`${table}.jsonl`)).map(({ value }) => value)).toEqual(['1', '2', '3']);
    const [head, ...rows] = readFileSync(table, 'utf8').split('\r\n');
    expect(head).toBe('index,input,status,attempts,sessionId,value');
    expect(rows.filter((row) => /^\d,\d,fulfilled,1,\w+,\d$/.test(row))).toHaveLength(3);
  });

  it('take objects from JSON lines, run those that failed again, and refuse others with --resume', async () => {
    const list = jobs.file('shops.jsonl', '{"url":"https://a.test","n":1}\n{"url":"https://b.test","n":2}\n');
    const words = [list, '--out', jobs.out];
    const fails =
      "export default ({ input }) => { if (input.n === 2) throw new Error('broken'); return input.n; };";
    const first = await run(fails, ...words);
    expect(first.code, first.stderr).toBe(1);
    expect(first.stderr).toContain('1 × Error: broken (for example {"url":"https://b.test","n":2})');
    const second = await run('export default ({ input }) => input.n;', ...words, '--resume');
    expect(second.code, second.stderr).toBe(0);
    expect(inOrder(results()).map(({ input, value }) => [input, value])).toEqual([
      [{ url: 'https://a.test', n: 1 }, 1],
      [{ url: 'https://b.test', n: 2 }, 2],
    ]);
    jobs.file('shops.jsonl', '{"url":"https://a.test","n":1}\n{"url":"https://c.test","n":2}\n');
    const third = await run(ASKS, ...words, '--resume');
    expectRefusal(third, 'input 2 is {"url":"https://c.test","n":2}, and was another one.');
  });

  it('collect only, with --concurrency 0, and name the worker that has an input', async () => {
    const held: ServerResponse[] = [];
    await using site = await Site.open((_request, response) => void held.push(response));
    const words = ['work', 'test', ...LIBRARY, script(ASKS), ...QUEUE, '--worker-name', 'the-worker'];
    const worker = startClient(words, jobs.local);
    const running = map('throw new Error("loaded");', inputs(site.url), '--concurrency', '0');
    await running.prints(/0 of 1 finished, 0 waiting, 1 taken by workers \(the-worker: 1\), 0\.0\/s\n/);
    held[0]!.end('answer');
    const { code, stdout, stderr } = await running.ended;
    expect(code, stderr).toBe(0);
    expect(parse(stdout)).toMatchObject([{ status: 'fulfilled', value: 'answer' }]);
    expect((await worker.end('SIGINT')).stderr).toContain('Finished 1 input, of which 0 failed.');
  });

  it('leave no empty file of results if the start is refused', async () => {
    const missing = join(jobs.folder, 'none.csv');
    expectRefusal(await run(ASKS, missing, '--out', jobs.out), `the file ${missing} does not exist.`);
    vi.stubEnv('REDIS_URL', 'redis://127.0.0.1:1');
    const { code, stderr } = await run(ASKS, inputs('a'), '--out', jobs.out);
    expect({ code, isLeft: existsSync(jobs.out) }, stderr).toEqual({ code: 1, isLeft: false });
  });

  it('refuse other inputs in the same file of results', async () => {
    writeFileSync(jobs.out, `${JSON.stringify({ status: 'fulfilled', index: 0, input: 'another' })}\n`);
    const ended = await run(ASKS, inputs('one'), '--out', jobs.out, '--resume');
    expectRefusal(ended, 'results.jsonl: input 1 is one, and was another one.');
  });
});
