import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FakeService, reply, session, type Answer } from '../support/fake-service.js';
import { PlayedBrowser, until } from '../support/played-browser.js';
import { variablesOf, type Environment, type Program } from '../support/program.js';
import { guardOf, helpers, start } from './support.js';

/** A service with one browser, which keeps its session id. */
describe('a release that is under way when the process ends', () => {
  let service: FakeService;
  let browser: PlayedBrowser;
  /** The tags of the present lease. */
  let lease: unknown;

  beforeEach(async () => {
    service = await FakeService.start();
    browser = await PlayedBrowser.start();
    lease = undefined;
    const show = () => session({ cdp_ws_url: browser.url, tags: lease });
    service.script('acquire', async (response, { body }) => {
      await until(() => lease === undefined);
      lease = body!['tags'];
      reply(response, { status: 200, json: show() });
    });
    service.script('session', (response) => reply(response, { status: 200, json: show() }));
    service.script('release', confirm);
  });

  afterEach(async () => {
    await expect.poll(helpers).toEqual([]);
    await service.close();
    await browser[Symbol.asyncDispose]();
  });

  const confirm = (response: ServerResponse): void => {
    lease = undefined;
    reply(response, { status: 204 });
  };
  const releases = () => service.of('release');
  const checks = () => service.of('session');
  const expectReleased = async () => {
    await expect.poll(() => lease).toBeUndefined();
  };
  const hold = (ending: string, environment: Environment = {}): Program =>
    start('holding', [ending], { ...variablesOf(service.options), ...environment });

  async function kill({ child, exit }: Program): Promise<void> {
    child.kill('SIGKILL');
    expect(await exit).toEqual([null, 'SIGKILL']);
  }

  it('is awaited after a signal, and not repeated', async () => {
    service.script('release', (response) => {
      lease = 'of another client';
      program.child.kill('SIGTERM');
      // The signal arrives long before the response.
      reply(response, { status: 204, delay: 500 });
    });
    const program = hold('release');
    expect(await program.exit).toEqual([null, 'SIGTERM']);
    expect(releases()).toHaveLength(1);
  });

  it.each(['SIGTERM', 'SIGKILL'] as const)(
    'does not end the lease of another client after %s, if its response never arrives',
    async (signal) => {
      service.script('release', () => {
        lease = { of: 'another client' };
        guard = guardOf(program);
        program.child.kill(signal);
      });
      let guard: ReturnType<typeof guardOf> | undefined;
      const program = hold('guarded');
      expect(await program.exit).toEqual([null, signal]);
      await expect.poll(() => checks().length).toBeGreaterThan(0);
      await expect.poll(() => guard!.isOver()).toBe(true);
      expect(releases()).toHaveLength(1);
    },
  );

  it('is repeated after SIGKILL if it never reached the service', async () => {
    service.script('release', () => void program.child.kill('SIGKILL'), confirm);
    const program = hold('guarded');
    expect(await program.exit).toEqual([null, 'SIGKILL']);
    await expectReleased();
    // A busy service may receive each request twice.
    expect(checks()).not.toHaveLength(0);
    expect(releases().length).toBeGreaterThan(1);
    // No release is repeated without a check of the owner.
    expect(releases().length).toBeLessThanOrEqual(checks().length + 1);
  });

  it('leaves the next lease of the same session guarded if it ends after that lease has started', async () => {
    const first: Answer = async (response) => {
      lease = undefined;
      await until(() => lease !== undefined);
      reply(response, { status: 204 });
    };
    service.script('release', first, confirm);
    const program = hold('guarded-again');
    await program.prints(/leased again/);
    expect(lease).toBeDefined();
    await kill(program);
    await expectReleased();
  });

  it('is repeated by the helper process after a status that is final elsewhere, where the service asks for it', async () => {
    service.script('release', { status: 400, headers: { 'x-should-retry': 'true' } }, confirm);
    expect(await hold('exit').exit).toEqual([7, null]);
    await expectReleased();
    expect(releases()).toHaveLength(2);
  });

  it('is completed by the helper process after the exit if it takes longer than the exit may', async () => {
    let hasExited = () => {};
    const exited = new Promise<void>((resolve) => (hasExited = resolve));
    // The helper receives no response to its first request.
    service.script(
      'release',
      () => {},
      async (response) => {
        await exited;
        confirm(response);
      },
    );
    expect(await hold('exit').exit).toEqual([7, null]);
    expect(lease).toBeDefined();
    hasExited();
    await expectReleased();
  });

  it('is sent once by the helper process through a gateway that sends an unsolicited 100', async () => {
    service.script('release', (response) => {
      response.writeContinue();
      confirm(response);
    });
    expect(await hold('exit').exit).toEqual([7, null]);
    await expectReleased();
    await expect.poll(helpers).toEqual([]);
    expect(releases()).toHaveLength(1);
  });

  it('is sent by a guard with the certificates of this process, and without its loaders', async () => {
    const options = '--use-openssl-ca --import=data:text/javascript,0';
    const program = hold('guarded-hold', { NODE_OPTIONS: options });
    await program.prints(/leased/);
    const { args } = guardOf(program);
    expect(args).toContain('--use-openssl-ca');
    expect(args).not.toContain('--import');
    await kill(program);
    await expectReleased();
  });
});
