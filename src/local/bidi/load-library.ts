import type { BidiMapper } from 'chromium-bidi';
import { HttpFault } from '../http/http-fault.js';
import type { Mapper } from './mapper-connection.js';

/** chromium-bidi, loaded. */
export interface BidiLibrary {
  readonly mapper: Mapper;
  /** Checks the parameters of commands; without it they reach Chromium as they are. */
  readonly parser: BidiMapper.BidiCommandParameterParser | undefined;
}

/** Loads the optional peer at the first BiDi connection; a 501 that says how to get it when it is missing. */
export async function loadBidiLibrary(): Promise<BidiLibrary> {
  try {
    const { BidiMapper } = await import('chromium-bidi');
    return { mapper: BidiMapper, parser: await loadParser() };
  } catch {
    const message = 'BiDi needs the package chromium-bidi. Install it: npm install chromium-bidi';
    throw new HttpFault(501, 'not_implemented', message);
  }
}

/** It lies at a path that is no promise of the package: a version that moved it does without. */
async function loadParser(): Promise<BidiLibrary['parser']> {
  try {
    const { BidiParser } = await import('chromium-bidi/out/Default/gen/src/bidiTab/BidiParser.js');
    return new BidiParser();
  } catch {
    return undefined;
  }
}
