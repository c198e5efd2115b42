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

/** The headers for the client: the service's, without hop-by-hop headers, overridden by the security headers. */
export function clientHeaders(headers: ResponseHeaders, secure: boolean): string[] {
  const named = namedByConnection(headers['connection']);
  const flat: string[] = [];
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || dropped.has(name) || named?.includes(name)) continue;
    if (typeof value === 'string') flat.push(name, value);
    else for (const one of value) flat.push(name, one);
  }
  flat.push(...securityHeaders);
  if (secure) flat.push(...strictTransport);
  return flat;
}

function namedByConnection(value: string | string[] | undefined): string[] | undefined {
  if (value === undefined || value === 'keep-alive' || value === 'close') return undefined;
  return String(value)
    .split(',')
    .map((name) => name.trim().toLowerCase());
}
