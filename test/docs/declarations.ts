import ts from 'typescript';

/** A public name, as its docstring describes it. */
export interface Described {
  readonly name: string;
  /** The first sentence of the docstring. */
  readonly meaning: string;
  /** The tag `@default`, or the sentence "Default: …" of the docstring. */
  readonly fallback: string;
  /** The codes of a class of errors, if they do not follow from its name as `ERR_CONNECT` from `ConnectError`. */
  readonly codes?: string;
}

/** The public declarations of the package, read with the compiler. */
export class Declarations {
  readonly #checker: ts.TypeChecker;
  readonly #exports = new Map<string, Map<string, ts.Symbol>>();

  constructor(entries: readonly string[]) {
    const files = entries.map((entry) => `src/${entry}.ts`);
    const { config } = ts.readConfigFile('tsconfig.json', ts.sys.readFile) as { config: object };
    const { options } = ts.parseJsonConfigFileContent({ ...config, include: [] }, ts.sys, '.');
    const program = ts.createProgram(files, options);
    this.#checker = program.getTypeChecker();
    for (const [at, file] of files.entries()) {
      const module = this.#checker.getSymbolAtLocation(program.getSourceFile(file)!)!;
      this.#exports.set(entries[at]!, this.#exportsOf(module));
    }
  }

  /** The members of an exported interface, class or object type. */
  membersOf(entry: string, type: string): Described[] {
    return this.#membersOf(this.#checker.getDeclaredTypeOfSymbol(this.#symbolOf(entry, type)));
  }

  /** The types of events, by the exported type of all of them: `StepOf<PoolSteps>`. */
  stepsOf(entry: string, type: string): Described[] {
    const { type: steps } = this.#symbolOf(entry, type).declarations![0] as ts.TypeAliasDeclaration;
    return this.#membersOf(
      this.#checker.getTypeFromTypeNode((steps as ts.TypeReferenceNode).typeArguments![0]!),
    );
  }

  /** The groups of names that the docstring of a type lists: `- Title: \`name\`, \`name\``. */
  groupsOf(entry: string, type: string): [title: string, names: string[]][] {
    const symbol = this.#symbolOf(entry, type);
    const text = ts.displayPartsToString(symbol.getDocumentationComment(this.#checker));
    return [...text.matchAll(/^- (.+?): (.+)$/gm)].map(([, title, names]) => [
      title!,
      [...names!.matchAll(/`(\w+)`/g)].map(([, name]) => name!),
    ]);
  }

  /** The exported functions, classes and constants of an entry. */
  valuesOf(entry: string): Described[] {
    return [...this.#exports.get(entry)!]
      .filter(([, symbol]) => symbol.flags & ts.SymbolFlags.Value && !isInternal(symbol))
      .map(([name, symbol]) => {
        return { ...this.#describe(name, symbol), codes: this.#codesOf(symbol) };
      });
  }

  #symbolOf(entry: string, type: string): ts.Symbol {
    const symbol = this.#exports.get(entry)?.get(type);
    if (!symbol) throw new Error(`src/${entry}.ts exports no ${type}.`);
    return symbol;
  }

  #membersOf(type: ts.Type): Described[] {
    return this.#checker
      .getPropertiesOfType(type)
      .filter((member) => !isInternal(member) && /^[a-z]/i.test(member.name))
      .map((member) => this.#describe(member.name, member));
  }

  #exportsOf(module: ts.Symbol): Map<string, ts.Symbol> {
    const found = this.#checker.getExportsOfModule(module).map((symbol) => {
      const isAlias = symbol.flags & ts.SymbolFlags.Alias;
      return [symbol.name, isAlias ? this.#checker.getAliasedSymbol(symbol) : symbol] as const;
    });
    return new Map(found);
  }

  #codesOf(symbol: ts.Symbol): string {
    const code =
      symbol.flags & ts.SymbolFlags.Class &&
      this.#checker.getDeclaredTypeOfSymbol(symbol).getProperty('code');
    if (!code) return '';
    const type = this.#checker.getTypeOfSymbol(code);
    const codes = (type.isUnion() ? type.types : [type]).flatMap((one) =>
      one.isStringLiteral() ? [one.value] : [],
    );
    const usual = `ERR${symbol.name
      .replace(/Error$/, '')
      .replaceAll(/[A-Z]/g, '_$&')
      .toUpperCase()}`;
    return codes.includes(usual) ? '' : codes.map((one) => `\`${one}\``).join(', ');
  }

  #describe(name: string, symbol: ts.Symbol): Described {
    const text = ts.displayPartsToString(symbol.getDocumentationComment(this.#checker));
    const tags = symbol.getJsDocTags(this.#checker).filter((tag) => tag.name === 'default');
    const tagged = tags.map((tag) => `\`${ts.displayPartsToString(tag.text)}\``)[0];
    const [, said] = /\bDefault:\s+([\s\S]*?)\.(?:\s|$)/.exec(text) ?? [];
    return { name, meaning: firstSentence(text), fallback: tagged ?? said?.replaceAll('\n', ' ') ?? '' };
  }
}

function isInternal(symbol: ts.Symbol): boolean {
  return symbol.getJsDocTags().some(({ name }) => name === 'internal');
}

/** Of a text whose first paragraph ends with a list, only what is before the list. */
function firstSentence(text: string): string {
  const [paragraph] = text.split(/\n\n|\n- /);
  const line = paragraph!.replaceAll('\n', ' ');
  const [sentence] = /^.*?[.](?=\s+[A-Z`'"]|$)/.exec(line) ?? [line];
  return sentence.replace(/[.:]$/, '');
}
