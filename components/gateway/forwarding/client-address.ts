import type { IncomingHttpHeaders } from 'node:http';
import { BlockList, isIP } from 'node:net';

export interface ClientFacts {
  readonly clientAddress: string;
  readonly secure: boolean;
  readonly host: string;
}

/** The parts of a request that identify its origin. */
export interface ClientTrail {
  readonly socket: { readonly remoteAddress?: string | undefined };
  readonly headers: IncomingHttpHeaders;
}

export type ReadClient = (request: ClientTrail) => ClientFacts;

const hostName = /^[\w.:[\]-]{1,255}$/;

/**
 * Determines the client's address. `X-Forwarded-*` is believed only when the connection comes from a trusted proxy; the
 * client is then the right-most address in `X-Forwarded-For` that is not a trusted proxy.
 */
export function createClientReader(trustedProxies: readonly string[]): ReadClient {
  if (trustedProxies.length === 0) return directClient;
  const trusted = blockList(trustedProxies);
  const isTrusted = (address: string): boolean => {
    const family = isIP(address);
    return family !== 0 && trusted.check(address, family === 4 ? 'ipv4' : 'ipv6');
  };
  return (request) => {
    const direct = directClient(request);
    if (!isTrusted(direct.clientAddress)) return direct;
    const { headers } = request;
    const chain = headerText(headers['x-forwarded-for'])
      .split(',')
      .map((part) => plainAddress(part.trim()))
      .filter((part) => isIP(part) !== 0);
    const host = lastOf(headers['x-forwarded-host']);
    return {
      clientAddress: chain.findLast((address) => !isTrusted(address)) ?? chain[0] ?? direct.clientAddress,
      secure: lastOf(headers['x-forwarded-proto']).toLowerCase() === 'https',
      host: hostName.test(host) ? host : direct.host,
    };
  };
}

function directClient(request: ClientTrail): ClientFacts {
  return {
    clientAddress: plainAddress(request.socket.remoteAddress ?? ''),
    secure: false,
    host: request.headers.host ?? '',
  };
}

function blockList(entries: readonly string[]): BlockList {
  const list = new BlockList();
  for (const entry of entries) {
    const [address = '', prefix] = entry.split('/');
    const family = isIP(address) === 4 ? 'ipv4' : 'ipv6';
    if (prefix === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(prefix), family);
  }
  return list;
}

function plainAddress(address: string): string {
  return address.startsWith('::ffff:') ? address.slice('::ffff:'.length) : address;
}

function headerText(value: string | string[] | undefined): string {
  return value === undefined ? '' : String(value);
}

function lastOf(value: string | string[] | undefined): string {
  return headerText(value).split(',').at(-1)?.trim() ?? '';
}
