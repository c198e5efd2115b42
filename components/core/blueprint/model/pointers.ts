/** Stands for all data in a disclosure. */
export const EVERYTHING = '/*';

/**
 * The member names of a JSON Pointer (RFC 6901), with or without `#` in front; undefined when it is malformed. The
 * pointer to everything, `/*`, is not treated specially.
 */
export function findNames(pointer: string): readonly string[] | undefined {
  const text = pointer.startsWith('#') ? pointer.slice(1) : pointer;
  if (text === '') return [];
  if (!text.startsWith('/') || /~(?![01])/.test(text)) return undefined;
  return text
    .slice(1)
    .split('/')
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** Whether a value at `names` is part of what a disclosed pointer gives. */
export function isCovered(names: readonly string[], pointer: string): boolean {
  if (pointer === EVERYTHING || pointer === `#${EVERYTHING}`) return true;
  const given = findNames(pointer);
  return given?.every((name, index) => names[index] === name) ?? false;
}
