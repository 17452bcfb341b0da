import { expectTypeOf } from 'expect-type';
import { it } from 'vitest';
import {
  anyOf,
  checksOf,
  flag,
  off,
  optional,
  readOptions,
  text,
  wholeNumber,
} from '../../src/shared/options.js';

interface Given {
  size: number;
  name?: string | undefined;
  again?: boolean | undefined;
}

/** Checked by the compiler (`npm run types`), never called. */
function types() {
  const size = wholeNumber(0);
  const name = optional(text());
  const again = optional(flag(), true);
  const checks = checksOf<Given>()({ size, name, again });
  expectTypeOf(readOptions(checks, {}, 'call')).toEqualTypeOf<
    Readonly<{ size: number; name?: string | undefined; again: boolean }>
  >();
  // @ts-expect-error -- the check of an option is missing
  checksOf<Given>()({ size, name });
  // @ts-expect-error -- no such option
  checksOf<Given>()({ size, name, again, other: name });
  // @ts-expect-error -- another type
  checksOf<Given>()({ size: text(), name, again });
  // @ts-expect-error -- a wider type
  checksOf<Given>()({ size, name: optional(anyOf('text or false', text(), off())), again });
  // @ts-expect-error -- a required option is not optional
  checksOf<Given>()({ size: optional(size), name, again });
  // @ts-expect-error -- an optional one is not required
  checksOf<Given>()({ size, name: text(), again });
}

it('the checks of a set of options accept exactly what its interface does', () => {
  expectTypeOf(types).toBeFunction();
});
