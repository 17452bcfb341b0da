/** One value of each factor. */
export type Combination<Factor extends string> = Readonly<Record<Factor, string>>;

/**
 * Returns combinations in which each value of a factor meets each value of every other factor, if such a combination is
 * possible. Pairs find the faults of two things that do not fit, with a small part of all combinations.
 */
export function pairwise<Factor extends string>(
  factors: Readonly<Record<Factor, readonly string[]>>,
  isPossible: (combination: Partial<Combination<Factor>>) => boolean,
): Combination<Factor>[] {
  const names = Object.keys(factors) as Factor[];
  const missing = new Set<string>();
  for (const [at, one] of names.entries())
    for (const other of names.slice(at + 1))
      for (const first of factors[one])
        for (const second of factors[other])
          if (isPossible({ [one]: first, [other]: second } as Partial<Combination<Factor>>))
            missing.add(pairOf(one, first, other, second));
  const combinations: Combination<Factor>[] = [];
  for (const pair of missing) {
    if (!missing.has(pair)) continue;
    const combination = complete(JSON.parse(pair) as Partial<Combination<Factor>>);
    combinations.push(combination);
    for (const covered of pairsOf(combination)) missing.delete(covered);
    missing.delete(pair);
  }
  return combinations;

  /** Adds the other factors, each with the value that covers most missing pairs. */
  function complete(begun: Partial<Combination<Factor>>): Combination<Factor> {
    let combination = begun;
    for (const name of names) {
      if (combination[name] !== undefined) continue;
      const candidates = factors[name]
        .map((value) => ({ ...combination, [name]: value }) as Partial<Combination<Factor>>)
        .filter(isPossible);
      const covers = (one: Partial<Combination<Factor>>) =>
        pairsOf(one).filter((pair) => missing.has(pair)).length;
      combination = candidates.reduce((best, one) => (covers(one) > covers(best) ? one : best));
    }
    return combination as Combination<Factor>;
  }

  function pairsOf(combination: Partial<Combination<Factor>>): string[] {
    const given = names.filter((name) => combination[name] !== undefined);
    return given.flatMap((one, at) =>
      given.slice(at + 1).map((other) => pairOf(one, combination[one]!, other, combination[other]!)),
    );
  }
}

function pairOf(one: string, first: string, other: string, second: string): string {
  return JSON.stringify({ [one]: first, [other]: second });
}
