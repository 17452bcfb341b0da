/**
 * A plugin of Stryker: texts for people are no behaviour, so those that are given to an error stay as they are. What
 * tells errors apart (class, code, fields) is changed.
 */
export const strykerPlugins = [{ kind: 'Ignore', name: 'messages', value: { shouldIgnore } }];

function shouldIgnore(path) {
  if (!path.isStringLiteral() && !path.isTemplateLiteral()) return undefined;
  const maker = path.findParent((parent) => parent.isNewExpression() || parent.isFunction());
  return maker?.isNewExpression() && maker.node.callee.name?.endsWith('Error')
    ? 'the text of an error'
    : undefined;
}
