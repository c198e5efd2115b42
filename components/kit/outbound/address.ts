import { BlockList, isIP, isIPv4 } from 'node:net';

/** IPv4 blocks that are no public unicast (IANA IPv4 Special-Purpose Address Registry, multicast, reserved). */
const specialV4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
];

/** Public unicast of IPv6 is 2000::/3 without these (IANA IPv6 Special-Purpose Address Registry): translations of IPv4 too. */
const specialV6 = ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20'];

const special = new BlockList();
for (const block of specialV4) add(special, block, 'ipv4');
for (const block of specialV6) add(special, block, 'ipv6');

const unicast = new BlockList();
add(unicast, '2000::/3', 'ipv6');

function add(list: BlockList, block: string, family: 'ipv4' | 'ipv6'): void {
  const [network = '', prefix = ''] = block.split('/');
  list.addSubnet(network, Number(prefix), family);
}

/** Whether an address is of the public internet: nothing of this host, this network or this cluster. */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 0) return false;
  if (isIPv4(address)) return !special.check(address, 'ipv4');
  // A zone names an interface of this host.
  if (address.includes('%')) return false;
  return unicast.check(address, 'ipv6') && !special.check(address, 'ipv6');
}
