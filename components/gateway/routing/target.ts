import { isDenied, isDeniedPlain } from './denied.ts';

/**
 * Classification of a request target: `clean` may be matched against the routing table; `denied` is under an internal
 * prefix; `ambiguous` has several interpretations among servers; `malformed` is not a path. Denied and ambiguous both
 * answer 404, so that a client cannot tell them apart.
 */
type Target =
  | { readonly kind: 'clean'; readonly path: string; readonly search: string }
  | { readonly kind: 'denied' | 'ambiguous' | 'malformed'; readonly path: string };

const plain = /^(?:\/(?!\.\.?(?:\/|$))[\w.~!$&'()*+,=:@-]+)*\/?$/;
const pathCharacters = /^[\w.~!$&'()*+,;=:@%/-]*$/;
const encodedStructure = /%(?:2f|5c|25|3b)/i;
const absoluteForm = /^https?:\/\/[^/?#]*/i;
const control = /\p{Cc}/u;

/** Classifies the request target of a request line (origin form or absolute form, with its query). */
export function judgeTarget(requestTarget: string): Target {
  const origin = requestTarget.startsWith('/') ? requestTarget : originForm(requestTarget);
  if (origin === undefined) return { kind: 'malformed', path: '/' };
  const mark = origin.indexOf('?');
  const path = mark < 0 ? origin : origin.slice(0, mark);
  const search = mark < 0 ? '' : origin.slice(mark);
  if (search.includes('#')) return { kind: 'malformed', path };
  if (plain.test(path)) {
    return isDeniedPlain(path) ? { kind: 'denied', path } : { kind: 'clean', path, search };
  }
  if (isDenied(path)) return { kind: 'denied', path };
  const kind = judgeEncoded(path);
  return kind === 'clean' ? { kind, path, search } : { kind, path };
}

function originForm(requestTarget: string): string | undefined {
  const found = absoluteForm.exec(requestTarget);
  if (found === null) return undefined;
  const rest = requestTarget.slice(found[0].length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** Percent-encoded letters are allowed; percent-encoded structure (slash, dot segment, percent, control) is not. */
function judgeEncoded(path: string): 'clean' | 'ambiguous' | 'malformed' {
  if (!pathCharacters.test(path)) return 'malformed';
  let decoded: string;
  try {
    decoded = decodeURIComponent(path);
  } catch {
    return 'malformed';
  }
  if (control.test(decoded)) return 'malformed';
  if (path.includes(';') || encodedStructure.test(path)) return 'ambiguous';
  const inner = decoded.split('/').slice(1);
  const odd = inner.some((segment, position) => {
    return segment === '.' || segment === '..' || (segment === '' && position < inner.length - 1);
  });
  return odd ? 'ambiguous' : 'clean';
}
