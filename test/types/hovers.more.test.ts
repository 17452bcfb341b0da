import ts from 'typescript';
import { expect, it } from 'vitest';

const ENTRIES = ['index', 'playwright', 'puppeteer', 'bullmq'];

it('shows in an editor what a callback receives, and the options of each function by name', () => {
  const { options } = ts.parseJsonConfigFileContent(
    { compilerOptions: { target: 'es2023', module: 'nodenext', strict: true, skipLibCheck: true } },
    ts.sys,
    '.',
  );
  const program = ts.createProgram(
    ENTRIES.map((entry) => `dist/${entry}.d.ts`),
    options,
  );
  const checker = program.getTypeChecker();
  const shown = ENTRIES.flatMap((entry) => {
    const file = program.getSourceFile(`dist/${entry}.d.ts`)!;
    return checker.getExportsOfModule(checker.getSymbolAtLocation(file)!).flatMap((symbol) => {
      const isAlias = (symbol.flags & ts.SymbolFlags.Alias) !== 0;
      const type = checker.getTypeOfSymbol(isAlias ? checker.getAliasedSymbol(symbol) : symbol);
      const flags = ts.TypeFormatFlags.NoTruncation;
      const signatures = [...type.getCallSignatures(), ...type.getConstructSignatures()];
      return signatures
        .map((one) => checker.signatureToString(one, file, flags))
        .map((text) => `${symbol.name}${text.replaceAll(/import\("[^"]*"\)\./g, '')}`);
    });
  });
  const find = (start: string) => shown.filter((text) => text.startsWith(start));
  expect(find('withPooledBrowser<Value, Session extends object = BrowserSession>')).toContain(
    'withPooledBrowser<Value, Session extends object = BrowserSession>(pool: Pools<Session>, ' +
      'fn: (lease: PlaywrightHandles & LeaseFacts<Session>) => Value | PromiseLike<Value>, ' +
      'options?: PlaywrightRunOptions<Session>): Promise<Run<Value, Session>>',
  );
  expect(find('mapPooledBrowsers')).toHaveLength(3);
  expect(find('ConnectError')).toHaveLength(1);
  // A destructured parameter has no name, and a callback's name hides what it receives.
  expect(shown.filter((text) => /\.\.\.\w+ \}|Callback</.test(text))).toEqual([]);
});
