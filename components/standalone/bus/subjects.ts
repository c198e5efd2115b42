const SUBJECT_LIMIT_BYTES = 1024;

/** Whether a text is a subject for publishing: tokens between dots, none empty, no wildcard token. */
export function isPublishSubject(subject: string): boolean {
  return isSubscribeSubject(subject) && !subject.split('.').some((token) => token === '*' || token === '>');
}

/** Whether a text is a subject for subscribing: `*` matches one token, a final `>` one or more. */
export function isSubscribeSubject(subject: string): boolean {
  if (subject.length === 0 || subject.length > SUBJECT_LIMIT_BYTES) return false;
  const tokens = subject.split('.');
  return tokens.every((token, at) => token !== '' && (token !== '>' || at === tokens.length - 1));
}

/** Whether a pattern contains a wildcard token. */
export function hasWildcard(pattern: string): boolean {
  return !isPublishSubject(pattern);
}

/** Whether a pattern's tokens match a subject's tokens. */
export function matches(pattern: readonly string[], subject: readonly string[]): boolean {
  for (const [at, token] of pattern.entries()) {
    if (token === '>') return subject.length > at;
    const actual = subject[at];
    if (actual === undefined) return false;
    if (token !== '*' && token !== actual) return false;
  }
  return pattern.length === subject.length;
}
