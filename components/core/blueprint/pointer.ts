import { isJsonObject } from '../encoding/json.ts';

/** Pointer of a blueprint that means all data. */
export const EVERYTHING = '/*';

/**
 * The names in a JSON Pointer (RFC 6901), which may have the form of a URI fragment (section 6). Undefined for text that
 * is none, and for the pointer to the whole document.
 */
export function findPath(pointer: string): readonly string[] | undefined {
  const text = pointer.startsWith('#') ? findDecoded(pointer.slice(1)) : pointer;
  if (text === undefined || !text.startsWith('/') || /~(?![01])/.test(text)) return undefined;
  return text.slice(1).split('/').map(unescapeName);
}

/** `~1` comes first: `~01` is the name `~1`. */
function unescapeName(name: string): string {
  return name.replaceAll('~1', '/').replaceAll('~0', '~');
}

function findDecoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** The value that a pointer leads to through objects alone; undefined when there is none. */
export function valueAt(document: unknown, pointer: string): unknown {
  return findPath(pointer)?.reduce<unknown>(memberOf, document);
}

function memberOf(value: unknown, name: string): unknown {
  return isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}
