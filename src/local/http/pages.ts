import type { IncomingMessage } from 'node:http';
import { PAGE_HEADERS } from '../../shared/page/headers.js';
import { LOGO_SVG, readScript } from '../../shared/page/page.js';
import { BASE_STYLE } from '../../shared/page/style.js';
import type { LocalFeature } from '../feature.js';
import { faultAnswer, notFound, toFault, type Answer } from './answer.js';
import { faultPage, textAnswer, type PageCall, type PageRoute } from './page.js';
import { methodOf, urlOf } from './request.js';

/** The pages of the server, with their styles and scripts. None takes the access token. */
export class Pages {
  readonly #routes = new Map<string, PageRoute>();
  readonly #assets = new Map<string, readonly [type: string, text: string]>([
    ['icon.svg', ['image/svg+xml', LOGO_SVG]],
    ['base.css', ['text/css', BASE_STYLE]],
  ]);

  constructor(parts: readonly Pick<LocalFeature, 'pages' | 'styles'>[]) {
    for (const { pages = {}, styles = {} } of parts) {
      for (const [path, route] of Object.entries(pages)) this.#routes.set(path, route);
      for (const [name, style] of Object.entries(styles))
        this.#assets.set(`${name}.css`, ['text/css', style]);
    }
  }

  /** Answers a request for a page or for its content. @returns undefined for other requests. */
  async answer(request: IncomingMessage): Promise<Answer | undefined> {
    const { pathname, searchParams: query } = urlOf(request);
    const route = this.#routes.get(`${methodOf(request)} ${pathname}`) ?? this.#asset(request, pathname);
    if (!route) return undefined;
    const answer = await callRoute(route, { request, query });
    return { ...answer, headers: { ...PAGE_HEADERS, ...answer.headers } };
  }

  /** GET /pages/{file}: a style or a script. They contain nothing private and need no token. */
  #asset(request: IncomingMessage, path: string): PageRoute | undefined {
    const file = /^\/pages\/([a-z-]+\.[a-z]+)$/.exec(path)?.[1];
    if (file === undefined || methodOf(request) !== 'GET') return undefined;
    return async () => textAnswer(...(this.#assets.get(file) ?? ['text/javascript', await scriptOf(file)]));
  }
}

async function callRoute(route: PageRoute, call: PageCall): Promise<Answer> {
  try {
    return await route(call);
  } catch (error) {
    const isPerson = call.request.headers.accept?.includes('text/html');
    return isPerson ? faultPage(toFault(error)) : faultAnswer(error);
  }
}

async function scriptOf(file: string): Promise<string> {
  if (!file.endsWith('.js')) throw notFound('There is no such file.');
  return await readScript(file).catch(() => {
    throw notFound('There is no such script. If you run from source, build the package first.');
  });
}
