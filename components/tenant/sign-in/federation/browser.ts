import { createHash, randomBytes } from 'node:crypto';

/** The browser that begins a visit at a provider, known again at its end by a cookie. */
interface Browser {
  /** What the state is bound to, base64url. */
  readonly hash: string;
  /** The header `Set-Cookie`. */
  readonly setCookie: string;
}

const lifetimeSeconds = 600;
const valuePattern = /^[A-Za-z0-9_-]{43}$/;

/** On https the name says that no other host has set the cookie (RFC 6265bis, 4.1.3.2). */
const nameOf = (baseUrl: string) =>
  baseUrl.startsWith('https:') ? '__Host-chancery-oauth' : 'chancery-oauth';

/**
 * Binds to the browser of a request. A value that it has stays, so that visits in several tabs end well. Scripts cannot
 * read it, and requests that other sites post do not carry it.
 *
 * @param cookies the header `Cookie`
 */
export function bindBrowser(baseUrl: string, cookies: string | undefined): Browser {
  const value = readValue(baseUrl, cookies) ?? randomBytes(32).toString('base64url');
  const secure = baseUrl.startsWith('https:') ? '; Secure' : '';
  const attributes = `; Path=/; Max-Age=${lifetimeSeconds}; HttpOnly; SameSite=Lax${secure}`;
  return { hash: hashOf(value), setCookie: `${nameOf(baseUrl)}=${value}${attributes}` };
}

/** What a state must be bound to, to be of the browser of a request; undefined without its cookie. */
export function browserOf(baseUrl: string, cookies: string | undefined): string | undefined {
  const value = readValue(baseUrl, cookies);
  return value === undefined ? undefined : hashOf(value);
}

function readValue(baseUrl: string, cookies = ''): string | undefined {
  const start = `${nameOf(baseUrl)}=`;
  const found = cookies.split(/; */).filter((cookie) => cookie.startsWith(start));
  // Two cookies of one name: another host of the domain has set one of them.
  const value = found.length === 1 ? found[0]?.slice(start.length) : undefined;
  return value !== undefined && valuePattern.test(value) ? value : undefined;
}

const hashOf = (value: string) => createHash('sha256').update(value).digest('base64url');
