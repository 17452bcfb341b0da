import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Site } from './site.js';

/** A page that can be navigated. */
export interface AnyPage {
  goto(url: string): Promise<unknown>;
}

/** The pop-ups of a page. */
const POP_UPS = 4;
/** Milliseconds for which pages are watched after the release, beside those for which one can block. */
const WATCHED = 1000;

/** Adds a frame each millisecond, and sends UDP packets by the first one that has WebRTC. Reports that it runs. Runs in pages. */
function poll(udp: number, popUps: number, blocks: number): void {
  addEventListener('unload', () => {
    const end = Date.now() + blocks;
    while (Date.now() < end);
  });
  const name = Math.random();
  setInterval(() => void fetch(`/runs?${Date.now()}&${name}`, { mode: 'no-cors' }).catch(() => {}), 50);
  setInterval(() => {
    const frame = document.createElement('iframe');
    document.body.append(frame);
    const { RTCPeerConnection: Connection } = frame.contentWindow as unknown as typeof globalThis;
    if (!('createOffer' in (Connection?.prototype ?? {}))) return frame.remove();
    const connection = new Connection({ iceServers: [{ urls: `stun:127.0.0.1:${udp}` }] });
    connection.createDataChannel('x');
    void connection.setLocalDescription();
  }, 1);
  for (let count = 0; location.pathname === '/' && count < popUps; count++) open('/pop-up', '', 'noopener');
}

/** An allowed site whose pages look for WebRTC until their end, and a UDP socket that no browser may reach. */
export class PollingPages implements AsyncDisposable {
  /** UDP packets since `reset`. */
  packets = 0;
  readonly #site: Site;
  readonly #udp: Socket;
  /** Pages that run, and the time in ms at which one has reported last. */
  readonly #pages = new Set<string>();
  #lastReport = 0;

  readonly #blocks: number;

  /** @param blocks Milliseconds for which each page blocks while it is closed. */
  static async open(blocks: number): Promise<PollingPages> {
    const udp = createSocket('udp4');
    await once(udp.bind(0, '127.0.0.1'), 'listening');
    const pages = new PollingPages(udp, blocks);
    await pages.#site.listen();
    return pages;
  }

  private constructor(udp: Socket, blocks: number) {
    this.#blocks = blocks;
    this.#udp = udp.on('message', () => this.packets++);
    const { port } = udp.address();
    const html = `<body><script>(${poll.toString()})(${port}, ${POP_UPS}, ${blocks})</script>`;
    this.#site = new Site(({ url = '' }, response) => {
      if (!url.startsWith('/runs'))
        return void response.writeHead(200, { 'content-type': 'text/html' }).end(html);
      const [time = '', name = ''] = url.slice('/runs?'.length).split('&');
      this.#pages.add(name);
      this.#lastReport = Math.max(this.#lastReport, Number(time));
      return void response.end();
    });
  }

  /** The option `allowedHosts` for the site alone. */
  get allowedHosts(): string {
    return new URL(this.#site.url).host;
  }

  /** Shows the site in a page, and waits until its pop-ups run. */
  readonly show = async (page: AnyPage): Promise<void> => {
    this.packets = 0;
    this.#pages.clear();
    this.#lastReport = 0;
    await page.goto(`${this.#site.url}/`);
    while (this.#pages.size <= POP_UPS) await sleep(20);
  };

  /**
   * Watches after the release.
   *
   * @param released The time of the release, in ms.
   * @returns The UDP packets of the whole lease, and for how many ms a page ran after the release.
   */
  async watch(released: number): Promise<{ packets: number; ranFor: number }> {
    await sleep(this.#blocks + WATCHED);
    return { packets: this.packets, ranFor: Math.max(0, this.#lastReport - released) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#site[Symbol.asyncDispose]();
    this.#udp.close();
    await once(this.#udp, 'close');
  }
}
