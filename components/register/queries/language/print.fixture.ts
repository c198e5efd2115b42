import type { Expression, LiteralValue } from './syntax.ts';

function printLiteral(literal: LiteralValue): string {
  switch (literal.type) {
    case 'null':
      return 'null';
    case 'string':
      return `'${literal.value.replaceAll("'", "''")}'`;
    default:
      return String(literal.value);
  }
}

const inner = (expression: Expression): string =>
  expression.kind === 'literal' || expression.kind === 'property' || expression.kind === 'call'
    ? printExpression(expression)
    : `(${printExpression(expression)})`;

/** Text of an expression, with every operation in parentheses. */
export function printExpression(expression: Expression): string {
  switch (expression.kind) {
    case 'literal':
      return printLiteral(expression.literal);
    case 'property':
      return expression.name;
    case 'call':
      return `${expression.name}(${expression.args.map(printExpression).join(', ')})`;
    case 'compare':
      return `${inner(expression.left)} ${expression.operator} ${inner(expression.right)}`;
    case 'in':
      return `${inner(expression.item)} in (${expression.list.map(({ literal }) => printLiteral(literal)).join(',')})`;
    case 'not':
      return `not ${inner(expression.of)}`;
    case 'all':
      return expression.of.map(inner).join(' and ');
    case 'any':
      return expression.of.map(inner).join(' or ');
  }
}
