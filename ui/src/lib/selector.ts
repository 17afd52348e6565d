// Parses and prints label selectors such as `{service_name="x", pod=~"a.*"}`.
// The grammar is that of a PromQL selector.

export type Operator = '=' | '!=' | '=~' | '!~';

export interface Matcher {
  name: string;
  op: Operator;
  value: string;
}

export const OPERATORS: readonly { op: Operator; label: string }[] = [
  { op: '=', label: 'is' },
  { op: '!=', label: 'is not' },
  { op: '=~', label: 'matches' },
  { op: '!~', label: 'does not match' },
];

export class SelectorError extends Error {}

function quote(text: string): string {
  return `"${text.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n').replace(/\t/g, '\\t').replace(/\r/g, '\\r')}"`;
}

const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_.]*$/;

/** Prints a matcher: `pod=~"a.*"`. Names with unusual characters are quoted. */
export function printMatcher({ name, op, value }: Matcher): string {
  return `${PLAIN_NAME.test(name) ? name : quote(name)}${op}${quote(value)}`;
}

/** Prints a selector without its braces. */
export function printMatchers(matchers: readonly Matcher[]): string {
  return matchers.map(printMatcher).join(', ');
}

/** Prints a selector with its braces. */
export function printSelector(matchers: readonly Matcher[]): string {
  return `{${printMatchers(matchers)}}`;
}

/** Parses matchers, with or without braces. Empty text gives none. */
export function parseMatchers(text: string): Matcher[] {
  let at = 0;
  const fail = (what: string): never => {
    throw new SelectorError(`${what} at position ${at + 1} of \`${text}\``);
  };
  const blank = (): void => {
    while (/\s/.test(text.charAt(at))) at += 1;
  };
  const string = (): string => {
    const mark = text.charAt(at);
    at += 1;
    let out = '';
    for (;;) {
      if (at >= text.length) fail('unterminated string');
      const char = text.charAt(at);
      at += 1;
      if (char === mark) return out;
      if (char === '\\' && mark !== '`') {
        const next = text.charAt(at);
        at += 1;
        out += { n: '\n', t: '\t', r: '\r' }[next] ?? next;
      } else {
        out += char;
      }
    }
  };

  const matchers: Matcher[] = [];
  blank();
  const braces = text.charAt(at) === '{';
  if (braces) at += 1;
  for (;;) {
    blank();
    if (at >= text.length) {
      if (braces) fail('missing `}`');
      return matchers;
    }
    if (braces && text.charAt(at) === '}') {
      at += 1;
      blank();
      if (at < text.length) fail('unexpected text');
      return matchers;
    }
    if (matchers.length > 0) {
      if (text.charAt(at) !== ',') fail('expected `,`');
      at += 1;
      blank();
      if (at >= text.length || text.charAt(at) === '}') continue;
    }
    const name = text.charAt(at) === '"' ? string() : (/^[A-Za-z_][A-Za-z0-9_.]*/.exec(text.slice(at))?.[0] ?? fail('expected a label name'));
    if (PLAIN_NAME.test(name) && text.startsWith(name, at)) at += name.length;
    blank();
    const op = (/^(=~|!~|!=|=)/.exec(text.slice(at))?.[0] ?? fail('expected one of = != =~ !~')) as Operator;
    at += op.length;
    blank();
    if (!/["'`]/.test(text.charAt(at))) fail('expected a value in quotes');
    matchers.push({ name, op, value: string() });
  }
}

/** Like `parseMatchers`, but returns no matchers for invalid text, because users can edit links. */
export function readMatchers(text: string): Matcher[] {
  try {
    return parseMatchers(text);
  } catch {
    return [];
  }
}
