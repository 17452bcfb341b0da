import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll } from 'vitest';
import { useSite } from './site.js';

/** Arguments of browsers for which these names are those of the listeners. */
export const OTHER_HOSTS =
  '--host-resolver-rules=MAP *.other.test 127.0.0.2, MAP xn--bcher-kva.example 127.0.0.2';

const HTML = { 'content-type': 'text/html' };

/** The kinds of loads: a function in a page of the allowed site, which receives the other host with its port. */
const LOADS: Record<string, (to: string, port: string) => unknown> = {
  fetch: (to) => fetch(`http://${to}/`, { mode: 'no-cors' }),
  'https: the first bytes of TLS': (to) => fetch(`https://${to}/`, { mode: 'no-cors' }),
  image: (to) => (new Image().src = `http://${to}/`),
  'image of a name': (_to, port) => (new Image().src = `http://a.other.test:${port}/`),
  'image of a name that is not ASCII': (_to, port) => (new Image().src = `http://Bücher.example:${port}/`),
  'user info': (to) => window.open(`http://127.0.0.1@${to}/`),
  backslash: (to) => (new Image().src = `http:\\\\${to}\\@127.0.0.1/`),
  'decimal address': (_to, port) => (new Image().src = `http://2130706434:${port}/`),
  'octal address': (_to, port) => (new Image().src = `http://0177.0.0.2:${port}/`),
  'hexadecimal address': (_to, port) => (new Image().src = `http://0x7f.2:${port}/`),
  'IPv6-mapped address': (_to, port) => (new Image().src = `http://[::ffff:127.0.0.2]:${port}/`),
  'loopback by IPv6': (_to, port) => (new Image().src = `http://[::1]:${port}/`),
  'loopback by name': (_to, port) => (new Image().src = `http://localhost:${port}/`),
  'loopback by name, trailing dot': (_to, port) => (new Image().src = `http://localhost.:${port}/`),
  'all addresses': (_to, port) => (new Image().src = `http://0.0.0.0:${port}/`),
  script: (to) =>
    document.head.append(Object.assign(document.createElement('script'), { src: `http://${to}/` })),
  'style sheet': (to) =>
    document.head.append(
      Object.assign(document.createElement('link'), { rel: 'stylesheet', href: `http://${to}/` }),
    ),
  preload: (to) =>
    document.head.append(
      Object.assign(document.createElement('link'), { rel: 'preload', as: 'image', href: `http://${to}/` }),
    ),
  prefetch: (to) =>
    document.head.append(
      Object.assign(document.createElement('link'), { rel: 'prefetch', href: `http://${to}/` }),
    ),
  'speculation rules': (to) => {
    const rules = {
      prefetch: [{ urls: [`http://${to}/`], eagerness: 'immediate' }],
      prerender: [{ urls: [`http://${to}/`], eagerness: 'immediate' }],
    };
    document.head.append(
      Object.assign(document.createElement('script'), {
        type: 'speculationrules',
        text: JSON.stringify(rules),
      }),
    );
  },
  video: (to) =>
    document.body.append(
      Object.assign(document.createElement('video'), { src: `http://${to}/`, preload: 'auto' }),
    ),
  font: async (to) => new FontFace('x', `url(http://${to}/)`).load(),
  object: (to) =>
    document.body.append(Object.assign(document.createElement('object'), { data: `http://${to}/` })),
  frame: (to) =>
    document.body.append(Object.assign(document.createElement('iframe'), { src: `http://${to}/` })),
  'frame of data:': (to) =>
    document.body.append(
      Object.assign(document.createElement('iframe'), { src: `data:text/html,<img src=http://${to}/>` }),
    ),
  'frame of blob:': (to) =>
    document.body.append(
      Object.assign(document.createElement('iframe'), {
        src: URL.createObjectURL(new Blob([`<img src=http://${to}/>`], { type: 'text/html' })),
      }),
    ),
  'frame of srcdoc': (to) =>
    document.body.append(
      Object.assign(document.createElement('iframe'), { srcdoc: `<img src=http://${to}/>` }),
    ),
  'meta refresh': (to) =>
    document.body.append(
      Object.assign(document.createElement('iframe'), {
        srcdoc: `<meta http-equiv=refresh content="0;http://${to}/">`,
      }),
    ),
  redirect: (to) => fetch(`/to?http://${to}/`, { mode: 'no-cors' }),
  'redirect of a frame': (to) =>
    document.body.append(Object.assign(document.createElement('iframe'), { src: `/to?http://${to}/` })),
  'event stream': (to) => new EventSource(`http://${to}/`),
  WebSocket: (to) => new WebSocket(`ws://${to}/`),
  'WebSocket over TLS': (to) => new WebSocket(`wss://${to}/`),
  'WebSocket that is a stream': (to) => {
    const { WebSocketStream } = window as unknown as { WebSocketStream: new (url: string) => object };
    return new WebSocketStream(`ws://${to}/`);
  },
  XMLHttpRequest: (to) => {
    const request = new XMLHttpRequest();
    request.open('GET', `http://${to}/`);
    request.send();
  },
  beacon: (to) => navigator.sendBeacon(`http://${to}/`, 'x'),
  'form in a frame': (to) => {
    document.body.append(Object.assign(document.createElement('iframe'), { name: 'form' }));
    const form = Object.assign(document.createElement('form'), {
      action: `http://${to}/`,
      method: 'POST',
      target: 'form',
    });
    document.body.append(form);
    form.submit();
  },
  ping: (to) => {
    const link = Object.assign(document.createElement('a'), { href: '#x', ping: `http://${to}/` });
    document.body.append(link);
    link.click();
  },
  'keepalive after the page is gone': (to) => {
    const frame = document.createElement('iframe');
    document.body.append(frame);
    void (frame.contentWindow as Window & typeof globalThis).fetch(`http://${to}/`, {
      mode: 'no-cors',
      keepalive: true,
    });
    frame.remove();
  },
  worker: (to) => new Worker(URL.createObjectURL(new Blob([`fetch('http://${to}/', { mode: 'no-cors' })`]))),
  'shared worker': (to) => new SharedWorker(`/worker?${to}`),
  'service worker': (to) => navigator.serviceWorker.register(`/worker?${to}`, { scope: '/nowhere/' }),
  'pop-up': (to) => window.open(`http://${to}/`),
  'pop-up without an opener': (to) => window.open(`http://${to}/`, '', 'noopener'),
  'pop-up of a redirect': (to) => window.open(`/to?http://${to}/`),
  'content security report': (to) =>
    document.body.append(Object.assign(document.createElement('iframe'), { src: `/report?${to}` })),
  'link to a new tab': (to) => {
    const link = Object.assign(document.createElement('a'), { href: `http://${to}/`, target: '_blank' });
    document.body.append(link);
    link.click();
  },
  worklet: (to) => new AudioContext().audioWorklet.addModule(`http://${to}/`),
  'fetch when the page is left': (to) =>
    (window as unknown as { fetchLater(url: string, how: object): object }).fetchLater(`http://${to}/`, {
      activateAfter: 0,
    }),
  'sign-in at another site': (to) => {
    const providers = [{ configURL: `https://${to}/config.json`, clientId: 'any' }];
    return navigator.credentials.get({ identity: { providers } } as CredentialRequestOptions);
  },
  // Over UDP, by a client of STUN.
  WebRTC: (to) => connectIn(window, to),
  'WebRTC in a new frame': (to) => {
    const frame = document.createElement('iframe');
    document.body.append(frame);
    connectIn(frame.contentWindow!, to);
  },
  'WebRTC in a document of a frame': (to) => {
    const frame = Object.assign(document.createElement('iframe'), { srcdoc: '<p>' });
    frame.addEventListener('load', () => connectIn(frame.contentWindow!, to));
    document.body.append(frame);
  },
  'WebRTC in a new pop-up': (to) => connectIn(window.open('')!, to),
  'WebRTC in a frame of one of many pop-ups': (to) => {
    for (let count = 0; count < 4; count++) {
      const popUp = window.open('about:blank', `many-${count}`)!;
      const frame = popUp.document.createElement('iframe');
      popUp.document.body.append(frame);
      connectIn(frame.contentWindow!, to);
    }
  },
  'WebRTC in a pop-up of a pop-up': (to) => connectIn(window.open('')!.open('')!, to),
  'WebRTC in a pop-up by a link': (to) => {
    const link = Object.assign(document.createElement('a'), {
      href: 'about:blank',
      target: 'linked',
      rel: 'opener',
    });
    document.body.append(link);
    link.click();
    connectIn(window.open('', 'linked')!, to);
  },
  'WebRTC in a frame that begins when the stack is full': (to) =>
    connectIn(
      whenStackIsFull(() => {
        const frame = document.createElement('iframe');
        document.body.append(frame);
        return frame.contentWindow!;
      }),
      to,
    ),
  'WebRTC in a pop-up that begins when the stack is full': (to) =>
    connectIn(
      whenStackIsFull(() => window.open('')!),
      to,
    ),
  'WebRTC in a script of a link to a new window': (to) => {
    const script = `javascript:opener.connectIn(window, '${to}')`;
    const link = Object.assign(document.createElement('a'), {
      href: script,
      target: 'script',
      rel: 'opener',
    });
    Object.assign(window, { connectIn });
    link.click();
  },
  'WebRTC in a script of a form in a closed shadow tree': (to) => {
    Object.assign(window, { connectIn });
    const host = document.createElement('div');
    document.body.append(host);
    const root = host.attachShadow({ mode: 'closed' });
    const script = `javascript:opener.connectIn(window, '${to}')`;
    root.innerHTML = `<form target=shadow rel=opener action="${script}"><button></button></form>`;
    root.querySelector('button')!.click();
  },
  'WebRTC in a script of a pop-up': (to) => window.open(`/webrtc?${to}`, '', 'noopener'),
  'WebRTC in a frame of another site': (to) =>
    document.body.append(
      Object.assign(document.createElement('iframe'), {
        src: `http://localhost:${location.port}/webrtc?${to}`,
      }),
    ),
  WebTransport: (to) => new WebTransport(`https://${to}/`),
  'WebTransport of a shared worker': (to) =>
    new SharedWorker(URL.createObjectURL(new Blob([`new WebTransport('https://${to}/')`]))),
};

/** Loads of a whole Chromium, which has icons, and processes for frames of other sites. */
export const OF_WHOLE_BROWSERS: typeof LOADS = {
  preconnect: (to) =>
    document.head.append(
      Object.assign(document.createElement('link'), { rel: 'preconnect', href: `http://${to}/` }),
    ),
  'preconnect by a header': (to) =>
    document.body.append(Object.assign(document.createElement('iframe'), { src: `/preconnect?${to}` })),
  icon: (to) => window.open(`/icon?${to}`),
  'WebRTC in pop-ups of a frame of another site, while its frames begin': (to) => {
    const site = `http://localhost:${location.port}`;
    let loading = 0;
    const begin = (src: string) => {
      loading++;
      const frame = Object.assign(document.createElement('iframe'), { src, onload: () => loading-- });
      document.body.append(frame);
    };
    begin(`${site}/pop-ups?${to}`);
    const beginning = setInterval(() => {
      // A slow machine does not get more than it can do.
      if (loading > 4) return;
      begin(site);
      const frames = document.querySelectorAll('iframe');
      if (frames.length > 10) [...frames].at(-8)!.remove();
    }, 60);
    addEventListener('message', () => {
      clearInterval(beginning);
      document.title = 'opened';
    });
  },
};

/** A session of CDP with a page. */
interface PageSession {
  send(method: string, params?: object): Promise<object>;
}

/** Loads of a client over CDP, such as the developer tools. */
const OF_CLIENTS: Record<string, (page: PageSession, to: string) => Promise<unknown>> = {
  'a resource for the developer tools, such as a source map': async (page, to) => {
    const { frameTree } = (await page.send('Page.getFrameTree')) as { frameTree: { frame: { id: string } } };
    const options = { disableCache: true, includeCredentials: false };
    const load = { frameId: frameTree.frame.id, url: `http://${to}/`, options };
    await page.send('Network.loadNetworkResource', load);
  },
  'manifest of an app': async (page, to) => {
    const link = `Object.assign(document.createElement('link'), { rel: 'manifest', href: 'http://${to}/' })`;
    await page.send('Runtime.evaluate', { expression: `document.head.append(${link})` });
    await page.send('Page.getAppManifest');
  },
  'WebRTC in new pages': async (page, to) => {
    const site = { expression: 'location.origin', returnByValue: true };
    const { result } = (await page.send('Runtime.evaluate', site)) as { result: { value: string } };
    for (let count = 0; count < 10; count++)
      await page.send('Target.createTarget', { url: `${result.value}/webrtc?${to}` });
  },
  'view-source': async (page, to) => page.send('Page.navigate', { url: `view-source:http://${to}/` }),
};

/** Runs in pages. */
function connectIn(inside: object, to: string): void {
  const { RTCPeerConnection: Connection } = inside as { RTCPeerConnection: typeof RTCPeerConnection };
  const connection = new Connection({ iceServers: [{ urls: `stun:${to}` }] });
  connection.createDataChannel('x');
  void connection.createOffer().then((offer) => connection.setLocalDescription(offer));
}
/** Opens a window where the stack is too full for a script of its beginning. Runs in pages. */
function whenStackIsFull(open: () => Window): Window {
  let found: Window | undefined;
  let left = 0;
  const fill = () => {
    try {
      fill();
    } catch {
      // The stack is full.
    }
    if (found !== undefined || left === 0) return;
    try {
      const opened = open();
      left--;
      if ('RTCPeerConnection' in opened) found = opened;
    } catch {
      // The stack is too full to open it, too.
    }
  };
  // The first time, the browser has not compiled all, and the scripts fit in the stack.
  for (let round = 0; round < 4 && !found; round++) {
    left = 2;
    fill();
  }
  return found!;
}
/** Opens pop-ups, one after the other. */
async function openPopUps(to: string): Promise<void> {
  for (let count = 0; count < 15; count++) {
    const popUp = window.open('about:blank', `pop-up-${count}`)!;
    try {
      connectIn(popUp, to);
    } catch {
      popUp.close();
    }
    await new Promise((resolve) => setTimeout(resolve));
  }
  window.parent.postMessage('opened', '*');
}
const CONNECT = `const connectIn = ${connectIn.toString()}; ${whenStackIsFull.toString()}`;

/** The allowed site. */
const answer: RequestListener = (request, response) => {
  const [path, query = ''] = request.url!.split(/\?(.*)/s);
  if (path === '/to') return void response.writeHead(302, { location: query }).end();
  if (path === '/worker')
    return void response
      .writeHead(200, { 'content-type': 'text/javascript' })
      .end(`fetch('http://${query}/', { mode: 'no-cors' }).catch(() => {});`);
  if (path === '/webrtc')
    return void response.writeHead(200, HTML).end(`<script>${CONNECT}connectIn(window, '${query}')</script>`);
  if (path === '/preconnect')
    return void response.writeHead(200, { ...HTML, link: `<http://${query}>; rel=preconnect` }).end();
  if (path === '/icon')
    return void response.writeHead(200, HTML).end(`<link rel="icon" href="http://${query}/">`);
  if (path === '/pop-ups')
    return void response
      .writeHead(200, HTML)
      .end(`<script>${CONNECT}(${openPopUps.toString()})('${query}')</script>`);
  if (path === '/report')
    return void response
      .writeHead(200, { ...HTML, 'content-security-policy': `img-src 'none'; report-uri http://${query}/` })
      .end('<img src=/x>');
  return void response.writeHead(200, HTML).end('<title>allowed</title>');
};

/** A listener on addresses that are not allowed, for each kind of load. */
interface Judge {
  readonly kind: string;
  readonly port: number;
  count: number;
  close(): void;
}

/** Listens for the whole test file. */
export function useJudges(loads = LOADS, ofClients = OF_CLIENTS) {
  const judges: Judge[] = [];
  const site = useSite(answer);
  beforeAll(async () => {
    for (const kind of Object.keys({ ...loads, ...ofClients })) judges.push(await listen(kind));
  });
  afterAll(() => judges.forEach((judge) => judge.close()));
  return {
    site,
    /** The site has two names, so that its frames can be of another site. */
    allowedHosts: () => ['127.0.0.1', 'localhost'].map((name) => new URL(site.as(name)).host).join(),
    kinds: () => judges.map(({ kind }) => kind),
    /** Makes every kind of load in a page of the allowed site. @param session Makes those of a client, too. */
    loadAll: async (page: { evaluate(script: string): Promise<unknown> }, session?: PageSession) => {
      for (const { kind, port } of judges) {
        const load = loads[kind];
        if (!load) continue;
        const call = `Promise.resolve((${load.toString()})('127.0.0.2:${port}', '${port}'))`;
        await page.evaluate(`(() => { ${CONNECT} try { ${call}.catch(() => {}); } catch {} })()`);
      }
      await new Promise((resolve) => setTimeout(resolve, 1500));
      if (!session) return;
      for (const { kind, port } of judges)
        await ofClients[kind]?.(session, `127.0.0.2:${port}`).catch(() => {});
    },
    /** The kinds that reached another host since the last call. */
    reached: () => {
      const kinds = judges.filter(({ count }) => count > 0).map(({ kind }) => kind);
      for (const judge of judges) judge.count = 0;
      return kinds;
    },
  };
}

/** Listens over TCP and UDP, at one port that is free on all addresses. */
async function listen(kind: string): Promise<Judge> {
  for (;;) {
    const judge = openJudge(kind);
    try {
      await judge.listen();
      return judge;
    } catch (error) {
      judge.close();
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    }
  }
}

function openJudge(kind: string): Judge & { listen(): Promise<void> } {
  const servers: Server[] = [];
  const sockets = new Set<Socket>();
  const packets = createSocket('udp4', () => judge.count++);
  const judge = {
    kind,
    port: 0,
    count: 0,
    listen: async () => {
      // Also `localhost`, whose other ports are allowed.
      for (const host of ['127.0.0.1', '127.0.0.2', '::1']) {
        const server = createServer((socket) => {
          judge.count++;
          sockets.add(socket);
          socket.on('error', () => {}).end(ANSWER);
        });
        servers.push(server);
        await once(server.listen(judge.port, host), 'listening');
        judge.port = (server.address() as AddressInfo).port;
      }
      await once(packets.bind(judge.port, '127.0.0.2'), 'listening');
    },
    close: () => {
      for (const server of servers) server.close();
      for (const socket of sockets) socket.destroy();
      packets.close();
    },
  };
  return judge;
}

const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';
