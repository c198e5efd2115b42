import { isIP } from 'node:net';

/** Groups of 16 bits in an IPv6 address. */
const ipv6Groups = 8;

/**
 * The network by which sign-ins are counted: the first 24 bits of an IPv4 address, the first 48 bits of an IPv6
 * address, as PostgreSQL prints a cidr. An IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2) is the IPv4 address.
 * Undefined for anything that is not an address.
 */
export function networkOf(address: string | undefined): string | undefined {
  if (address === undefined) return undefined;
  const plain = address.split('%')[0] ?? '';
  const family = isIP(plain);
  if (family === 4) return ipv4Network(plain);
  return family === 6 ? ipv6Network(plain) : undefined;
}

function ipv4Network(address: string): string {
  return `${address.split('.').slice(0, 3).join('.')}.0/24`;
}

function ipv6Network(address: string): string {
  const groups = groupsOf(canonicalIpv6(address));
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  if (isMapped) {
    const [high = 0, low = 0] = groups.slice(6);
    return ipv4Network([high >> 8, high & 0xff, low >> 8, low & 0xff].join('.'));
  }
  const prefix = groups.slice(0, 3).map((group) => group.toString(16));
  return `${canonicalIpv6(`${prefix.join(':')}::`)}/48`;
}

/** The RFC 5952 form, without dotted decimal notation. */
function canonicalIpv6(address: string): string {
  return new URL(`http://[${address}]`).hostname.slice(1, -1);
}

function groupsOf(canonical: string): number[] {
  const [head = '', tail] = canonical.split('::');
  const parse = (part: string) =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16));
  const before = parse(head);
  const after = tail === undefined ? [] : parse(tail);
  return [...before, ...Array<number>(ipv6Groups - before.length - after.length).fill(0), ...after];
}
