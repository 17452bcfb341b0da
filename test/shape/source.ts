import ts from 'typescript';
import type { Place } from './run-time.js';

/** The types of what carries a message, or a part of one that names it. */
const MESSAGES = new Set([
  'Message',
  'WireMessage',
  'CdpMessage',
  'Frame',
  'Buffer',
  'Uint8Array',
  'RawData',
  'Answer',
  'BrowserAnswer',
  'WireEvent',
]);
/** A text or a parsed message has a type of its own nowhere: these are its names. */
const NAMES = /^(data|text|json|message|response|event|value)$/;

export interface Look {
  /** The function, with its class, file and line. */
  readonly name: string;
  /** It reads the message; otherwise it only passes it on. */
  readonly reads: boolean;
}

/** The syntax trees and the types of src. */
export class Source {
  readonly #program: ts.Program;
  readonly #checker: ts.TypeChecker;

  constructor(paths: readonly string[]) {
    const { config } = ts.readConfigFile('tsconfig.json', (path) => ts.sys.readFile(path)) as {
      config: object;
    };
    const { options } = ts.parseJsonConfigFileContent(config, ts.sys, '.');
    this.#program = ts.createProgram({ rootNames: paths.map((path) => `src/${path}.ts`), options });
    this.#checker = this.#program.getTypeChecker();
  }

  #file(path: string): ts.SourceFile {
    const file = this.#program.getSourceFile(`src/${path}.ts`);
    if (!file) throw new Error(`There is no src/${path}.ts.`);
    return file;
  }

  /** The members of an interface, also those that it inherits. */
  membersOf(path: string, name: string): string[] {
    const found = this.#file(path).statements.find(
      (one) => (ts.isInterfaceDeclaration(one) || ts.isTypeAliasDeclaration(one)) && one.name.text === name,
    );
    if (!found)
      throw new Error(`src/${path}.ts has no interface ${name}: correct INTERFACES in test/shape/shape.ts.`);
    return this.#checker
      .getTypeAtLocation(found)
      .getProperties()
      .map((one) => one.name);
  }

  /**
   * The classes of a file that send commands and wait for their responses: a method takes the name of one, what it returns settles later,
   * and the class writes the message with its id.
   */
  clients(path: string): string[] {
    const isSender = (member: ts.ClassElement) =>
      ts.isMethodDeclaration(member) &&
      member.parameters.some((one) => one.name.getText() === 'method') &&
      /^Promise\b/.test(this.#checker.typeToString(this.#checker.getTypeAtLocation(member.type ?? member)));
    return this.#file(path).statements.flatMap((one) => {
      const isClient =
        ts.isClassDeclaration(one) && one.members.some(isSender) && /\{ id, method\b/.test(one.getText());
      return isClient ? one.name!.text : [];
    });
  }

  /** A function that receives a message; undefined for another one. */
  look({ file, line, column }: Place): Look | undefined {
    const tree = this.#file(file);
    const found = functionAt(tree, ts.getPositionOfLineAndCharacter(tree, line, column));
    const parameters = found?.parameters.filter((one) => this.#isMessage(one)) ?? [];
    if (!found || parameters.length === 0) return undefined;
    return {
      name: `${nameOf(found)} (src/${file}.ts:${line + 1})`,
      reads: parameters.some((one) => isRead(one, found)),
    };
  }

  #isMessage(parameter: ts.ParameterDeclaration): boolean {
    const type = this.#checker.getTypeAtLocation(parameter);
    if (this.#carries(type)) return true;
    const isAny = (type.flags & (ts.TypeFlags.String | ts.TypeFlags.Unknown)) !== 0;
    return isAny && NAMES.test(parameter.name.getText());
  }

  #carries(given: ts.Type, isPart = false): boolean {
    const type = this.#checker.getBaseConstraintOfType(given) ?? given;
    if ([type.aliasSymbol, type.symbol].some((one) => one && MESSAGES.has(one.name))) return true;
    if (type.isUnion()) return type.types.some((one) => this.#carries(one, isPart));
    // What holds a message and who receives it, as data.
    const declared = type.symbol?.declarations?.[0];
    const isData = declared && (ts.isInterfaceDeclaration(declared) || ts.isTypeLiteralNode(declared));
    if (isPart || !isData || !declared.getSourceFile().fileName.includes('/src/')) return false;
    return type.getProperties().some((one) => this.#carries(this.#checker.getTypeOfSymbol(one), true));
  }
}

type Code = ts.SignatureDeclaration & { readonly body?: ts.Node };

/** The innermost function whose head is at a position. */
function functionAt(tree: ts.SourceFile, position: number): Code | undefined {
  let found: Code | undefined;
  const visit = (node: ts.Node): void => {
    if (position < node.getStart(tree) || position >= node.end) return;
    if (ts.isFunctionLike(node) && 'body' in node && position <= (node as Code).body!.getStart(tree))
      found = node as Code;
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return found;
}

/** Its name, or that of what it is given to, with the class around it. */
function nameOf(found: Code): string {
  const names: string[] = [];
  for (let node: ts.Node = found; !ts.isSourceFile(node); node = node.parent) {
    if (ts.isCallExpression(node) && node !== found.parent) continue;
    const named = 'name' in node ? (node.name as ts.Node | undefined)?.getText() : undefined;
    if (node === found && ts.isConstructorDeclaration(node)) names.unshift('constructor');
    else if (named !== undefined && (ts.isClassLike(node) || ts.isFunctionLike(node) || names.length === 0))
      names.unshift(named);
    else if (node === found) names.unshift(`${node.parent.getText().split('\n')[0]!.slice(0, 40)}…`);
  }
  return names.join('.');
}

/** Whether a function takes a parameter apart or compares it, instead of only passing it on. */
function isRead({ name }: ts.ParameterDeclaration, { body }: Code): boolean {
  if (!ts.isIdentifier(name)) return true;
  let reads = false;
  const visit = (node: ts.Node): void => {
    if (ts.isIdentifier(node) && node.text === name.text) {
      const { parent } = node;
      const isPassed =
        ((ts.isCallExpression(parent) || ts.isNewExpression(parent)) && parent.expression !== node) ||
        ts.isShorthandPropertyAssignment(parent) ||
        ts.isReturnStatement(parent) ||
        ts.isAsExpression(parent) ||
        ts.isConditionalExpression(parent) ||
        (ts.isPropertyAccessExpression(parent) && parent.name === node) ||
        (ts.isPropertyAssignment(parent) && parent.name === node) ||
        ts.isSpreadAssignment(parent) ||
        (ts.isBinaryExpression(parent) && parent.right === node && isAssignment(parent));
      if (!isPassed) reads = true;
    }
    ts.forEachChild(node, visit);
  };
  if (body) visit(body);
  return reads;
}

function isAssignment({ operatorToken }: ts.BinaryExpression): boolean {
  return operatorToken.kind === ts.SyntaxKind.EqualsToken;
}
