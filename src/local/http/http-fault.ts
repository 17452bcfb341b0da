import type { ErrorDetail } from '../../shared/service-errors.js';

/** What an error response says besides its code and message. */
export interface FaultExtras {
  readonly details?: readonly ErrorDetail[];
  readonly inner_error?: ErrorDetail;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An error that is a response (interface: Error). Thrown anywhere below a route, answered in one place. */
export class HttpFault extends Error {
  readonly status: number;
  readonly code: string;
  readonly extras: FaultExtras;

  constructor(status: number, code: string, message: string, extras: FaultExtras = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.extras = extras;
  }

  /** The Error body. */
  get body(): object {
    const { details, inner_error } = this.extras;
    return {
      code: this.code,
      message: this.message,
      ...(details && { details }),
      ...(inner_error && { inner_error }),
    };
  }
}

/** 400; one detail for each wrong field. */
export function badRequest(message: string, wrong: readonly string[] = []): HttpFault {
  const details = wrong.map((message) => ({ code: 'invalid_input', message }));
  return new HttpFault(400, 'bad_request', message, details.length > 0 ? { details } : {});
}

/** 404. */
export function notFound(message: string): HttpFault {
  return new HttpFault(404, 'not_found', message);
}

/** 503: the local pool is being closed. */
export function closing(): HttpFault {
  return new HttpFault(503, 'service_unavailable', 'The local pool is closing.');
}

/** Any error as a response. What is not a fault of ours is a 500 that tells nothing of the inside. */
export function toFault(error: unknown): HttpFault {
  return error instanceof HttpFault ? error : new HttpFault(500, 'internal_error', 'Internal server error.');
}
