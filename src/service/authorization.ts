import { InvalidOptionError } from '../shared/errors.js';
import { hideSecret } from '../shared/redact.js';
import { checkToken } from './checks.js';

/** A bearer token, or a function that gives one. The function is asked before each request, and again after a 401. */
export type Token = string | (() => string | Promise<string>);

/** The access token of a pool. From its first use on it is hidden wherever text is redacted. */
export class Authorization {
  readonly #token: Token;
  #last: string | undefined;

  constructor(token: Token | undefined) {
    this.#token = checkToken(token);
    if (typeof this.#token === 'string') this.#last = this.#token;
  }

  /** A token function may have a fresh one after a 401; a fixed token will be refused again. */
  get canChange(): boolean {
    return typeof this.#token === 'function';
  }

  /** The token that was used last: at the end of a process there is no time to ask for another. */
  get last(): string | undefined {
    return this.#last;
  }

  async current(): Promise<string> {
    const token = checkToken(typeof this.#token === 'string' ? this.#token : await this.#token());
    if (typeof token !== 'string')
      throw new InvalidOptionError('token', 'The token function must give a string.');
    hideSecret(token);
    this.#last = token;
    return token;
  }
}
