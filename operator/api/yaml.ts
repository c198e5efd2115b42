/**
 * Writes JSON data in YAML 1.2 block style. Equal data gives equal bytes: keys in their given order, two spaces, lists at
 * the depth of their key as kubectl writes them, long texts folded.
 */

const WIDTH = 110;

/** Texts without quotes: they cannot be read as anything but text. */
const PLAIN = /^[A-Za-z_/.$^][A-Za-z0-9_./$^()@+-]*(?: [A-Za-z0-9_./$^()@+-]+)*$/;
const OTHER_MEANING = /^(?:y|n|yes|no|on|off|true|false|null|~|\.inf|\.nan|[-+.]?[0-9].*)$/i;

function isPlain(text: string): boolean {
  return PLAIN.test(text) && !OTHER_MEANING.test(text);
}

function quoted(text: string): string {
  if (/^[\x20-\x7e]*$/.test(text) && text.includes("'") && !/["\\]/.test(text)) return `"${text}"`;
  return /^[\x20-\x7e]*$/.test(text) ? `'${text.replaceAll("'", "''")}'` : JSON.stringify(text);
}

/** Whether a folded text reads back unchanged: single spaces only, and printable characters. */
function isFoldable(text: string): boolean {
  return /^[\x21-\x7e]+(?: [\x21-\x7e]+)+$/.test(text);
}

function fold(text: string, indent: string): string {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && indent.length + line.length + word.length >= WIDTH) {
      lines.push(line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return `>-\n${[...lines, line].map((each) => indent + each).join('\n')}`;
}

function literal(text: string, indent: string): string {
  const lines = text.split('\n').map((line) => (line === '' ? '' : indent + line));
  return `|-\n${lines.join('\n')}`;
}

/** A text that starts after `column` characters of its line. */
function scalarText(text: string, indent: string, column: number): string {
  const isBlock = /^[\x21-\x7e][\x20-\x7e\n]*[\x21-\x7e]$/.test(text);
  if (text.includes('\n') && isBlock) return literal(text, indent);
  const short = isPlain(text) ? text : quoted(text);
  return column + short.length > WIDTH && isFoldable(text) ? fold(text, indent) : short;
}

function isEmpty(value: object): boolean {
  return Object.keys(value).length === 0;
}

function emptyText(value: object): string {
  return Array.isArray(value) ? '[]' : '{}';
}

function key(name: string): string {
  return isPlain(name) ? name : quoted(name);
}

function members(value: object, depth: number): string[] {
  const indent = '  '.repeat(depth);
  return Object.entries(value).flatMap(([name, member]) => {
    if (member === undefined) return [];
    const head = `${indent}${key(name)}:`;
    if (typeof member !== 'object' || member === null) {
      return [`${head} ${scalar(member, `${indent}  `, head.length + 1)}`];
    }
    if (isEmpty(member)) return [`${head} ${emptyText(member)}`];
    return [head, ...(Array.isArray(member) ? items(member, depth) : members(member, depth + 1))];
  });
}

function items(list: readonly unknown[], depth: number): string[] {
  const indent = '  '.repeat(depth);
  return list.flatMap((item) => {
    if (typeof item !== 'object' || item === null) {
      return [`${indent}- ${scalar(item, `${indent}  `, indent.length + 2)}`];
    }
    if (isEmpty(item)) return [`${indent}- ${emptyText(item)}`];
    const [first = '', ...rest] = Array.isArray(item) ? items(item, depth + 1) : members(item, depth + 1);
    return [`${indent}- ${first.slice(indent.length + 2)}`, ...rest];
  });
}

function scalar(value: unknown, indent: string, column: number): string {
  return typeof value === 'string' ? scalarText(value, indent, column) : String(value);
}

/** One YAML document, with a line feed at its end. */
export function toYaml(value: object): string {
  return `${members(value, 0).join('\n')}\n`;
}
