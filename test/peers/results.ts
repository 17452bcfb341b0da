/** The result of each test, by its file and title. */
export type Results = Record<string, string>;

/** Returns the titles of the tests whose results differ. */
export function compare(plain: Results, leased: Results): string[] {
  return Object.keys({ ...plain, ...leased }).filter((title) => plain[title] !== leased[title]);
}

/** Prints the equal results of each file, and the differences. The exit code is 1 if there are some. */
export function report(
  { plain, leased }: { plain: Results; leased: Results },
  fileOf: (title: string) => string,
  describe: (title: string) => string,
): void {
  const differences = compare(plain, leased);
  const equal: Record<string, number> = {};
  const byFile: Record<string, Record<string, number>> = {};
  for (const [title, status] of Object.entries(plain))
    if (leased[title] === status)
      for (const counts of [equal, (byFile[fileOf(title)] ??= {})])
        counts[status] = (counts[status] ?? 0) + 1;
  for (const [file, counts] of Object.entries(byFile)) console.log(`${file}: ${JSON.stringify(counts)}`);
  const ran = Object.values(leased).filter((status) => status !== 'skipped').length;
  console.log(`${ran} tests, ${differences.length} differences. Equal: ${JSON.stringify(equal)}`);
  for (const title of differences) console.log(describe(title));
  process.exitCode = differences.length > 0 ? 1 : 0;
}
