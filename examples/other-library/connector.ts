import type CDP from 'chrome-remote-interface';
import type { Connector } from 'pooled-browser';

/** What the callback receives: a client of the browser, and the session of a page in it. */
export interface CdpHandles {
  client: CDP.Client;
  sessionId: string;
}

/** Connects chrome-remote-interface, which pooled-browser does not support itself, to leased browsers. */
export const chromeRemoteInterface: Connector<CdpHandles> = {
  library: 'chrome-remote-interface',
  refusal: (protocol) => (protocol === 'cdp' ? undefined : 'chrome-remote-interface speaks only CDP.'),
  load: () => import('chrome-remote-interface'),
  async connect(request) {
    const { default: connect } = await import('chrome-remote-interface');
    const client = await connect({ target: await request.endpoint(), local: true });
    let isConnected = true;
    client.on('disconnect', () => (isConnected = false));
    const earlier = new Set((await client.Target.getTargets({})).targetInfos.map(({ targetId }) => targetId));
    const context = request.context === 'new' ? await client.Target.createBrowserContext({}) : undefined;
    const { targetId } = await client.Target.createTarget({ url: 'about:blank', ...context });
    const { sessionId } = await client.Target.attachToTarget({ targetId, flatten: true });
    return {
      handles: { client, sessionId },
      isConnected: () => isConnected,
      async cleanup() {
        const { targetInfos } = await client.Target.getTargets({});
        const ours = targetInfos.filter(({ type, targetId }) => type === 'page' && !earlier.has(targetId));
        await Promise.all(ours.map(({ targetId }) => client.Target.closeTarget({ targetId })));
        if (context) await client.Target.disposeBrowserContext(context);
      },
      disconnect: () => client.close(),
    };
  },
};
