import { elsewhereHeader } from '#kit/http/http.ts';
import { securityHeaders, strictTransport } from '../answers/security-headers.ts';

type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

const dropped = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'server',
  'x-powered-by',
  elsewhereHeader,
  ...securityHeaders.filter((_text, position) => position % 2 === 0),
]);

/** Paths of pages, which run scripts of their own; everything else answers data. */
const pagePrefixes = ['/auth/', '/app/', '/wallet/', '/authorize/'];

/** A referrer policy that tells less than ours. */
const strictestReferrer = 'no-referrer';

/** What a service may decide of the security headers of its answer. */
function securityHeadersOf(headers: ResponseHeaders, path: string): readonly string[] {
  const referrer = headers['referrer-policy'] === strictestReferrer;
  const policy = headers['content-security-policy'];
  const isPage = typeof policy === 'string' && pagePrefixes.some((prefix) => `${path}/`.startsWith(prefix));
  if (!referrer && !isPage) return securityHeaders;
  const own: Readonly<Record<string, string>> = {
    ...(referrer && { 'referrer-policy': strictestReferrer }),
    ...(isPage && { 'content-security-policy': policy }),
  };
  return securityHeaders.map((text, position) =>
    position % 2 === 0 ? text : (own[securityHeaders[position - 1] ?? ''] ?? text),
  );
}

/**
 * The headers for the client: the service's, without hop-by-hop headers, overridden by the security headers. A service
 * may send `Referrer-Policy: no-referrer`, and pages their own content security policy.
 *
 * @param path of the request, without its query
 */
export function clientHeaders(headers: ResponseHeaders, secure: boolean, path: string): string[] {
  const named = namedByConnection(headers['connection']);
  const flat: string[] = [];
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || dropped.has(name) || named?.includes(name)) continue;
    if (typeof value === 'string') flat.push(name, value);
    else for (const one of value) flat.push(name, one);
  }
  flat.push(...securityHeadersOf(headers, path));
  if (secure) flat.push(...strictTransport);
  return flat;
}

function namedByConnection(value: string | string[] | undefined): string[] | undefined {
  if (value === undefined || value === 'keep-alive' || value === 'close') return undefined;
  return String(value)
    .split(',')
    .map((name) => name.trim().toLowerCase());
}
