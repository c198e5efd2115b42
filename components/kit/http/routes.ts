/** A served route: method and pattern with `:parameters` and `*`. */
interface ServedRoute {
  readonly method: string;
  readonly url: string;
}

/**
 * Methods that routes serve at the path of a URL, in order of registration, HEAD with each GET; empty for an unknown
 * path.
 */
export function allowedMethods(routes: readonly ServedRoute[], url: string): string[] {
  const path = segments(url.split('?', 1)[0] ?? '/');
  const methods = routes.filter((route) => matches(segments(route.url), path)).map((route) => route.method);
  return [...new Set(methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])))];
}

function segments(path: string): string[] {
  return path.split('/');
}

function matches(pattern: readonly string[], path: readonly string[]): boolean {
  const wildcard = pattern.at(-1) === '*';
  if (wildcard ? path.length < pattern.length : path.length !== pattern.length) {
    return false;
  }
  return pattern.every((part, index) => part === '*' || part.includes(':') || part === path[index]);
}
