import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import { LiveView } from '../../live/live-view.js';
import { acceptWebSocket } from '../../net/accept-websocket.js';
import {
  createLoopbackServer,
  isSameSecret,
  listenOnLoopback,
  readBody,
  Refusal,
  refuseUpgrade,
  sourceFault,
} from '../../net/loopback-server.js';
import type { PicturedBrowser } from '../../recorder/pictures.js';
import { clock } from '../../shared/clock.js';
import { jsonOf } from '../../shared/json.js';
import { PAGE_HEADERS } from '../../shared/page/headers.js';
import { assetOf, handoffPage, type HandoffFacts } from './page.js';
import type { HandoffAnswer } from './options.js';
import type { PageQuestions, Question } from './page-questions.js';
import { LONGEST_NOTE, MOST_FILES, readAnswer, readFiles, readReply } from './replies.js';

/** What the page shows. */
export interface HandoffPlan {
  readonly message: string;
  /** Of the lease. */
  readonly name: string | undefined;
  readonly sessionId: string;
  /** Undefined if no pictures of the browser can be had. */
  readonly browser: PicturedBrowser | undefined;
  readonly questions: PageQuestions | undefined;
  readonly liveViewUrl: string | undefined;
}

/** A message to the page, besides those of the live view. */
export interface QuestionsMessage {
  readonly type: 'questions';
  readonly questions: readonly Question[];
}

/** Largest message of the page in bytes. Pasted text can be long. */
const MOST_BYTES = 1024 * 1024;
/** Milliseconds in which connections end after the answer. */
const LAST_WORDS = 1000;

interface Reply {
  readonly type: string;
  readonly text: string;
}

/** The page of one hand-off, on loopback: from the question to its answer. */
export class HandoffServer {
  /** Resolves with the one answer. */
  readonly answered: Promise<HandoffAnswer>;
  readonly #plan: HandoffPlan;
  readonly #loopback = createLoopbackServer();
  /** The first part of each path, which nobody can guess. */
  readonly #secret = globalThis.crypto.randomUUID();
  readonly #views = new Set<LiveView>();
  #host = '';
  #answer: (answer: HandoffAnswer) => void = () => {};
  /** What happened, once the hand-off is over. */
  #end: string | undefined;

  static async start(plan: HandoffPlan): Promise<HandoffServer> {
    const server = new HandoffServer(plan);
    await server.#listen();
    return server;
  }

  private constructor(plan: HandoffPlan) {
    this.#plan = plan;
    this.answered = new Promise((resolve) => (this.#answer = resolve));
  }

  get url(): string {
    return `http://${this.#host}/${this.#secret}/`;
  }

  /** Ends the page. Nothing listens afterwards. @param end What happened, for those who still have it open. */
  end(end: string): void {
    this.#end ??= end;
    const { server } = this.#loopback;
    server.close();
    for (const view of this.#views) view.cut(this.#end.slice(0, 120));
    server.closeIdleConnections();
    clock.setTimeout(this.#loopback.cut, LAST_WORDS).unref();
  }

  async #listen(): Promise<void> {
    const { server } = this.#loopback;
    this.#host = await listenOnLoopback(server);
    server.on('request', (request, response) => void this.#respond(request, response));
    server.on('upgrade', (request, socket: Socket, head) => this.#upgrade(request, socket, head));
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let status = 200;
    let reply: Reply;
    try {
      const path = this.#pathOf(request);
      this.#loopback.trust(request.socket);
      reply = await (request.method === 'POST' ? this.#onPost(path, request) : this.#onGet(path, request));
    } catch (error) {
      const refusal = error instanceof Refusal ? error : new Refusal(500, 'Internal error.');
      status = refusal.status;
      reply = json({ error: refusal.message });
    }
    const headers = {
      'content-type': `${reply.type}; charset=utf-8`,
      'content-length': Buffer.byteLength(reply.text),
    };
    // What is left of a request that was refused is not read.
    const last = status === 200 ? {} : { connection: 'close' };
    response.writeHead(status, { ...PAGE_HEADERS, ...headers, ...last }).end(reply.text);
  }

  async #onGet(path: string, { method }: IncomingMessage): Promise<Reply> {
    if (method !== 'GET' && method !== 'HEAD') throw new Refusal(405, 'Only GET and POST are served here.');
    if (path === '') return { type: 'text/html', text: handoffPage(this.#plan.browser !== undefined) };
    if (path === 'facts') return json(this.#facts);
    const asset = await assetOf(path);
    if (!asset) throw new Refusal(404, 'There is no such page.');
    return asset;
  }

  async #onPost(path: string, request: IncomingMessage): Promise<Reply> {
    // A form of another page can't send this type, and a page of another origin asks before it does.
    if (!/^application\/json\b/i.test(request.headers['content-type'] ?? ''))
      throw new Refusal(415, 'The body must be application/json.');
    if (request.headers.origin === undefined)
      throw new Refusal(403, 'Only the page of the hand-off can answer.');
    if (path === 'answer') return this.#onAnswer(await readBody(request, 8 * LONGEST_NOTE));
    if (path !== 'files') throw new Refusal(404, 'There is no such page.');
    const chosen = readFiles(jsonOf(await readBody(request, MOST_FILES)));
    if (!chosen) throw new Refusal(400, 'The files can not be read.');
    await this.#plan.questions?.answerFiles(chosen.id, chosen.files).catch(() => {
      throw new Refusal(409, 'The page no longer takes these files.');
    });
    return json({});
  }

  #onAnswer(body: string): Reply {
    if (this.#end !== undefined) throw new Refusal(409, this.#end);
    const answer = readAnswer(jsonOf(body));
    if (!answer) throw new Refusal(400, 'The answer has a status, "done" or "declined", and a note.');
    this.#end = answer.status === 'done' ? 'It was answered: "Done".' : 'It was answered: "Cannot be done".';
    this.#answer(answer);
    return json(answer);
  }

  #upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    const { browser, questions } = this.#plan;
    try {
      if (this.#pathOf(request) !== 'live' || !browser || !questions)
        throw new Refusal(404, 'There is no such WebSocket.');
      if (request.headers.origin === undefined)
        throw new Refusal(403, 'Only the page of the hand-off can connect.');
      if (this.#end !== undefined) throw new Refusal(409, this.#end);
    } catch (error) {
      const { status, message } = error as Refusal;
      return refuseUpgrade(socket, status, { headers: PAGE_HEADERS, body: message });
    }
    this.#loopback.trust(socket);
    acceptWebSocket([request, socket, head], MOST_BYTES, (client) => this.#show(client, browser, questions));
  }

  #show(client: WebSocket, browser: PicturedBrowser, questions: PageQuestions): void {
    // It may have been answered meanwhile.
    if (this.#end !== undefined) return client.terminate();
    const look = (targetId: string) => void questions.look(targetId).catch(() => {});
    const view = new LiveView(client, browser, { readOnly: false }, look);
    this.#views.add(view);
    const send = () => {
      const message: QuestionsMessage = { type: 'questions', questions: questions.list };
      client.send(JSON.stringify(message), () => {});
    };
    const stop = questions.onChange(send);
    send();
    client.on('message', (data: Buffer, isBinary) => {
      const reply = isBinary ? undefined : readReply(jsonOf(data.toString()));
      if (reply?.type === 'dialog')
        void questions.answerDialog(reply.id, reply.accept, reply.text).catch(() => {});
      else if (reply?.type === 'option') void questions.choose(reply.id, reply.index).catch(() => {});
    });
    client.once('close', () => {
      stop();
      this.#views.delete(view);
    });
  }

  get #facts(): HandoffFacts {
    const { message, name, sessionId, liveViewUrl } = this.#plan;
    return {
      message,
      ...(name !== undefined && { name }),
      sessionId,
      ...(liveViewUrl !== undefined && { liveViewUrl }),
      ...(this.#end !== undefined && { end: this.#end }),
    };
  }

  /** The path of a request below the secret. @throws Refusal */
  #pathOf({ headers, url = '' }: IncomingMessage): string {
    const fault = sourceFault(headers, this.#host);
    if (fault !== undefined) throw new Refusal(403, fault);
    if (!['same-origin', 'none'].includes(headers['sec-fetch-site']?.toString() ?? 'none'))
      throw new Refusal(403, 'Requests of other sites are refused.');
    const [, secret = '', ...path] = url.split('?', 1)[0]!.split('/');
    if (!isSameSecret(secret, this.#secret)) throw new Refusal(404, 'There is no such page.');
    return path.join('/');
  }
}

function json(value: object): Reply {
  return { type: 'application/json', text: JSON.stringify(value) };
}
