import { PooledBrowserError, type ErrorFacts } from './pooled-browser-error.js';

/** An optional peer that this call needs is not installed. */
export class MissingLibraryError extends PooledBrowserError {
  override readonly name = 'MissingLibraryError' as const;
  declare readonly code: 'ERR_MISSING_LIBRARY';

  /** The package's name on npm. */
  readonly library: string;

  constructor(library: string, facts?: ErrorFacts) {
    super(
      `The package ${library} is needed here and could not be loaded. Install it: npm install ${library}`,
      'ERR_MISSING_LIBRARY',
      facts,
    );
    this.library = library;
  }
}
