/** The query parameter of RFC 6750 2.3. */
const parameter = 'access_token';

/**
 * The reason to refuse a query with an access token; undefined when there is none. Only hubs take a token there, because
 * browsers send no headers with a WebSocket or an event stream: elsewhere it would reach logs and caches.
 */
export function judgeQueryToken(search: string, isHub: boolean): string | undefined {
  if (search === '') return undefined;
  const count = new URLSearchParams(search).getAll(parameter).length;
  if (count === 0) return undefined;
  if (!isHub) return 'An access token must be sent in the Authorization header.';
  return count > 1 ? 'The query has more than one access token.' : undefined;
}
