import type { ServiceAuth, ServiceRequest } from './browser-service.js';

/** A request with its address. It is JSON, has no token, and needs no function of the service: any process can send it. */
export interface CompleteRequest extends Omit<ServiceRequest, 'path'> {
  readonly url: string;
  readonly auth: ServiceAuth;
}

const BEARER = { header: 'authorization', scheme: 'Bearer' } as const;

/** Adds the address of a service to a request. */
export function completeRequest(
  { path, ...request }: ServiceRequest,
  baseUrl: URL,
  auth: ServiceAuth = BEARER,
): CompleteRequest {
  const root = baseUrl.pathname.replace(/\/+$/, '');
  return { ...request, url: baseUrl.origin + root + path, auth };
}

/** Adds the token to a request. */
export function authorize(
  { url, auth }: Pick<CompleteRequest, 'url' | 'auth'>,
  token: string | undefined,
): { url: URL; headers: Record<string, string> } {
  const target = new URL(url);
  if (token === undefined || auth === 'none') return { url: target, headers: {} };
  if ('query' in auth) target.searchParams.set(auth.query, token);
  if (!('header' in auth)) return { url: target, headers: {} };
  const { header, scheme } = auth;
  const value = scheme === 'Basic' ? Buffer.from(token).toString('base64') : token;
  return { url: target, headers: { [header]: scheme ? `${scheme} ${value}` : value } };
}
