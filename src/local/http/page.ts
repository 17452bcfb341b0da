import type { IncomingMessage } from 'node:http';
import { ICON_PATH, pageHtml } from '../../shared/page/page.js';
import { HttpFault, type Answer } from './answer.js';

/** A request for a page or for its content. A token in the query authorizes it: a person's browser sends no bearer token. */
export interface PageCall {
  readonly request: IncomingMessage;
  readonly query: URLSearchParams;
}

/** Answers a request for a page, or for its content. */
export type PageRoute = (call: PageCall) => Answer | Promise<Answer>;

/** The secret of a link. Its name is `token`, because `redact` and `withoutSecrets` hide the values of this name. */
export function tokenInQuery(query: URLSearchParams): string {
  return query.get('token') ?? '';
}

/** 401, without details about the token. @param advice What a person can do about a link that does not open its page. */
export function invalidLink(advice: string): HttpFault {
  return new HttpFault(401, 'unauthorized', advice);
}

interface Page {
  readonly title: string;
  /** Name of the script and of the style sheet: `/pages/<name>.js`, `/pages/<name>.css`. */
  readonly name?: string;
  readonly body: string;
}

/** Answers with a page. The page contains nothing of the request: its script fetches the content. */
export function pageAnswer({ title, name, body }: Page, status = 200): Answer {
  const assets = `<link rel="stylesheet" href="/pages/${name}.css">
<script type="module" src="/pages/${name}.js"></script>`;
  const head = `<title>${title}</title>
<link rel="icon" href="${ICON_PATH}">
<link rel="stylesheet" href="/pages/base.css">
${name === undefined ? '' : assets}`;
  return textAnswer('text/html', pageHtml(head, body), status);
}

/** Returns a page about an error, for a person who followed a link. */
export function faultPage({ status, message }: HttpFault): Answer {
  const body = `<main class="notice"><h1>This page cannot be shown</h1><p>${message}</p></main>`;
  return pageAnswer({ title: 'pooled-browser', body }, status);
}

export function textAnswer(type: string, text: string, status = 200): Answer {
  const data = Buffer.from(text);
  return { status, content: { type: `${type}; charset=utf-8`, size: data.length, data } };
}
