import { dump } from 'js-yaml';
import { canonicalJson } from '#core/encoding/jcs.ts';
import { isJsonObject } from '#core/encoding/json.ts';

/** Bytes of a document, as EXPORT_TOO_LARGE tells. */
const mostBytes = 1024 * 1024;

export const exportFormats = ['json', 'yaml'] as const;
export type ExportFormat = (typeof exportFormats)[number];

/** A definition as a document; without text it would be too large. */
export interface Exported {
  readonly text?: string;
}

/**
 * Writes a definition as a document of 1 MiB at most, with a line feed at its end. JSON has its members in canonical order
 * (RFC 8785, section 3.2.3), two spaces a level. YAML has them sorted by name and is YAML 1.2.
 * @param definition JSON text
 */
export function exportDefinition(definition: string, format: ExportFormat): Exported {
  const value: unknown = JSON.parse(canonicalJson(JSON.parse(definition)));
  const lines: string[] = [];
  // Indentation makes some definitions many times larger, in both formats: this one is bounded while it is written.
  if (!writeJson(value, lines)) return {};
  const text = format === 'json' ? `${lines.join('')}\n` : dump(value, yamlOptions);
  return Buffer.byteLength(text) > mostBytes ? {} : { text };
}

const yamlOptions = { noRefs: true, lineWidth: -1, sortKeys: true } as const;

/** Appends the parts of a document; false when it would be too large. */
function writeJson(value: unknown, parts: string[]): boolean {
  let length = 0;
  const add = (part: string): boolean => {
    parts.push(part);
    length += part.length;
    return length < mostBytes;
  };
  const writeAll = (
    members: readonly (readonly [head: string, member: unknown])[],
    brackets: string,
    indent: string,
  ): boolean => {
    if (members.length === 0) return add(brackets);
    const inner = `${indent}  `;
    const isWritten = members.every(
      ([head, member], at) =>
        add(`${at === 0 ? brackets.charAt(0) : ','}\n${inner}${head}`) && write(member, inner),
    );
    return isWritten && add(`\n${indent}${brackets.charAt(1)}`);
  };
  const write = (each: unknown, indent: string): boolean => {
    if (Array.isArray(each)) {
      return writeAll(
        each.map((item) => ['', item] as const),
        '[]',
        indent,
      );
    }
    if (!isJsonObject(each)) return add(JSON.stringify(each));
    const members = Object.keys(each)
      .sort()
      .map((name) => [`${JSON.stringify(name)}: `, each[name]] as const);
    return writeAll(members, '{}', indent);
  };
  return write(value, '');
}
