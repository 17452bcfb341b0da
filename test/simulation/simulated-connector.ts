import type { LibraryConnection, Connector, ContextChoice, Workspace } from '../../src/drivers/connector.js';
import type { SimulatedService } from './simulated-service.js';
import type { SimulatedSocket } from './simulated-socket.js';
import type { World } from './world.js';

/** The handles of a simulated callback. */
export interface SimulatedHandles {
  socket: SimulatedSocket;
  /** Uses the page. */
  touch: () => void;
}

/** An automation library in memory: each step takes some time, and fails as the world's faults require. */
export function simulatedConnector(world: World, service: SimulatedService): Connector<SimulatedHandles> {
  const { clock, random } = world;
  return {
    library: 'simulated',
    refusal: () => undefined,
    load: async () => {
      await clock.sleep(random.between(0, 300));
      if (world.strikes('load: library missing')) throw new Error('library missing');
    },
    connect: async ({ socket, context }) =>
      connect(world, service, { socket: socket as unknown as SimulatedSocket, context }),
  };
}

async function connect(
  world: World,
  service: SimulatedService,
  { socket, context }: { socket: SimulatedSocket; context: ContextChoice },
): Promise<LibraryConnection<SimulatedHandles>> {
  const { clock, random } = world;
  await clock.sleep(world.strikes('connect: slow') ? random.between(1000, 40_000) : random.between(1, 200));
  if (world.strikes('connect: throws')) throw new Error('driver: connect failed');
  if (world.strikes('connect: hangs')) await new Promise(() => {});
  if (world.strikes('connect: unresponsive page')) await thawed(world, socket);
  if (service.shape === 'cdp' && !socket.isOver) service.checkReceived(socket.browser, socket.grant.call);
  loseSooner(world, service, socket);
  return {
    handles: { socket, touch: () => socket.use(context) },
    openWorkspace: async (isolation) =>
      openWorkspace(world, socket, isolation === 'none' ? 'default' : 'new'),
    isConnected: () => !socket.isOver,
    cleanup: () => step(world, socket, 'cleanup'),
    disconnect: async () => {
      socket.close('closed-by-us');
      await step(world, socket, 'disconnect');
    },
  };
}

/** A page for tasks. Closing and resetting it can also hang or fail. */
async function openWorkspace(
  world: World,
  socket: SimulatedSocket,
  context: ContextChoice,
): Promise<Workspace<SimulatedHandles>> {
  const { clock, random } = world;
  await clock.sleep(random.between(1, 50));
  if (world.strikes('page: throws')) throw new Error('driver: no page');
  if (world.strikes('page: hangs')) await new Promise(() => {});
  return {
    handles: { socket, touch: () => socket.use(context) },
    reset: async () => !socket.isOver && !world.strikes('page: not reusable'),
    close: () => step(world, socket, 'page close'),
  };
}

async function thawed({ clock }: World, socket: SimulatedSocket): Promise<void> {
  socket.browser.freeze();
  while (socket.browser.unresponsive !== undefined && !socket.isOver) await clock.sleep(500);
  if (socket.isOver) throw new Error('driver: the socket ended');
}

/** Libraries differ after their socket has ended: some reject, some wait. */
async function step(
  world: World,
  socket: SimulatedSocket,
  name: 'cleanup' | 'disconnect' | 'page close',
): Promise<void> {
  const { clock, random } = world;
  await clock.sleep(random.between(1, 50));
  if (world.strikes(`${name}: throws`)) throw new Error(`driver: ${name} failed`);
  if (world.strikes(`${name}: hangs`)) await new Promise(() => {});
  if (name === 'disconnect' || !socket.isOver) return;
  if (random.chance(0.5)) throw new Error('driver: the socket is gone');
  await new Promise(() => {});
}

/** Loses the browser during its lease in one of several ways. */
function loseSooner(world: World, service: SimulatedService, socket: SimulatedSocket): void {
  const { clock, random } = world;
  const after = random.between(0, 3000);
  if (world.strikes('socket: dropped')) clock.after(after, () => socket.lose('dropped'));
  // Six pings without an answer.
  if (world.strikes('socket: half-open')) clock.after(after + 15_000, () => socket.lose('dropped'));
  if (world.strikes('socket: closed by the service'))
    clock.after(after, () => socket.lose('closed-by-service'));
  if (!world.strikes('socket: expired')) return;
  clock.after(after, () => {
    const isOpen = socket.browser.sockets.has(socket);
    socket.lose('expired');
    if (isOpen) service.expire(socket.grant);
  });
}
