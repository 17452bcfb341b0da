/**
 * A plugin of Stryker that does not change the texts of errors: tests check the class, the code and the fields of an
 * error.
 */
export const strykerPlugins = [{ kind: 'Ignore', name: 'messages', value: { shouldIgnore } }];

function shouldIgnore(path) {
  if (!path.isStringLiteral() && !path.isTemplateLiteral()) return undefined;
  const maker = path.findParent((parent) => parent.isNewExpression() || parent.isFunction());
  return maker?.isNewExpression() && maker.node.callee.name?.endsWith('Error')
    ? 'the text of an error'
    : undefined;
}
