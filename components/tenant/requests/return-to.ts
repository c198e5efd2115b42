import { z } from 'zod';

/**
 * Hosts that a sign-in may lead to: exact, or `*.suffix` for every host below it (not the suffix itself), each with a
 * port where it has one.
 */
export type ReturnToHosts = readonly string[];

const hostPattern = /^(?:\*\.)?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?$/;

/** Parses the setting: hosts separated by commas. */
export const returnToHosts = z
  .string()
  .default('')
  .transform((text) => text.split(',').map((host) => host.trim().toLowerCase()))
  .transform((hosts) => hosts.filter((host) => host !== ''))
  .refine((hosts) => hosts.every((host) => hostPattern.test(host)), 'expected hosts separated by commas');

/** Where a sign-in leads: `url` is the path and query of this origin, or the whole address of another one. */
interface Destination {
  readonly url: string;
  readonly isForeign: boolean;
}

/**
 * Judges a destination that a client names (an open redirect otherwise): a path of this origin, an address of this
 * origin, or an address of an allowed host over https; http is allowed for localhost.
 *
 * @param baseUrl of the installation
 * @returns undefined when it is not allowed
 */
export function judgeDestination(
  asked: string,
  { baseUrl, hosts }: { readonly baseUrl: string; readonly hosts: ReturnToHosts },
): Destination | undefined {
  // Browsers drop tabs and line ends, and read a backslash as a slash: what they read differently is no destination.
  if (/[\\\s\p{Cc}]/u.test(asked) || asked.length > 2048) return undefined;
  if (asked.startsWith('//') || (/^[a-z][a-z0-9+.-]*:/i.test(asked) && !/^https?:\/\/[^/]/i.test(asked)))
    return undefined;
  const url = URL.parse(asked, `${baseUrl}/`);
  if (url === null || url.username !== '' || url.password !== '') return undefined;
  if (url.origin === new URL(baseUrl).origin) {
    const path = `${url.pathname}${url.search}`;
    return path.startsWith('//') ? undefined : { url: path, isForeign: false };
  }
  const isAllowed = hosts.some((host) => matches(host, url));
  const isSafe = url.protocol === 'https:' || (url.protocol === 'http:' && url.hostname === 'localhost');
  return isAllowed && isSafe
    ? { url: `${url.origin}${url.pathname}${url.search}`, isForeign: true }
    : undefined;
}

function matches(host: string, { host: withPort, hostname }: URL): boolean {
  const name = host.includes(':') ? withPort : hostname;
  return host.startsWith('*.')
    ? name.endsWith(host.slice(1)) && name.length > host.length - 1
    : name === host;
}
