import { deniedPaths } from './table.ts';

const maxDecodings = 6;

/**
 * Whether a path is under a denied prefix in any interpretation that some server might use: percent-encoded once or
 * several times, overlong UTF-8, `%uXXXX`, full-width forms, backslashes, upper case, repeated slashes, dot segments,
 * path parameters, control characters. False positives are acceptable.
 */
export function isDenied(path: string): boolean {
  const flat = decodeFully(path)
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll('\\', '/')
    .replace(/[\p{Cc}\s]/gu, '');
  const segments = flat.split('/').map((segment) => segment.split(/[;?#]/, 1)[0] ?? '');
  const withoutDots = segments.filter((segment) => segment !== '' && segment !== '.' && segment !== '..');
  return matchesAny(withoutDots) || matchesAny(resolveDots(segments));
}

/** The same check for a plain path (no encoding, no empty or dot segments), at the cost of one split. */
export function isDeniedPlain(path: string): boolean {
  return matchesAny(path.toLowerCase().split('/').slice(1));
}

function decodeFully(path: string): string {
  let text = path;
  for (let round = 0; round < maxDecodings && text.includes('%'); round++) {
    const next = text
      .replace(/%c0%af|%e0%80%af|%f0%80%80%af|%c1%9c/gi, '/')
      .replace(/%c0%ae|%e0%80%ae/gi, '.')
      .replace(/%u([0-9a-f]{4})/gi, (_match, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
      .replace(/(?:%[0-9a-f]{2})+/gi, decodeRun);
    if (next === text) break;
    text = next;
  }
  return text;
}

function decodeRun(run: string): string {
  const bytes = Buffer.from(run.replaceAll('%', ''), 'hex');
  return bytes.toString('utf8');
}

function resolveDots(segments: readonly string[]): string[] {
  const kept: string[] = [];
  for (const segment of segments) {
    if (segment === '..') kept.pop();
    else if (segment !== '' && segment !== '.') kept.push(segment);
  }
  return kept;
}

const patterns = deniedPaths.map((path) => path.split('/').slice(1));

function matchesAny(segments: readonly string[]): boolean {
  return patterns.some(
    (pattern) =>
      segments.length >= pattern.length &&
      pattern.every((part, position) => part === '*' || part === segments[position]),
  );
}
