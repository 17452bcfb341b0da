import { expect, it } from 'vitest';
import { FakeService, reply, session } from '../support/fake-service.js';
import { SLOW_START } from '../support/program.js';
import { startClient } from './support.js';

it.each([[['acquire', 'pool']], [['map', 'pool', 'test/cli/task.mjs', 'LICENSE', '--concurrency', '1']]])(
  '%j exits with 130 at Ctrl-C while it waits, and releases a browser that is leased afterwards',
  async (args) => {
    await using service = await FakeService.start();
    let grant!: () => void;
    service.script('acquire', (response) => {
      grant = () => reply(response, { status: 200, json: session() });
    });
    const waiting = startClient(args, service.options);
    await expect.poll(() => service.of('acquire').length, SLOW_START).toBe(1);
    waiting.child.kill('SIGINT');
    await waiting.prints(/Press Ctrl-C again to quit immediately\./);
    grant();
    expect(await waiting.ended).toMatchObject({ code: 130, stdout: '' });
    expect(waiting.stderr).toContain('pooled-browser: Interrupted by SIGINT.');
    expect(service.of('acquire')).toHaveLength(1);
    expect(service.released).toEqual(['session-1']);
  },
);
