import { expect, it } from 'vitest';
import { resolveTier } from './tier.ts';

const administrator = { roles: ['Administrator'], orgType: 'Standard' } as const;
const member = { roles: ['User'], orgType: 'Standard' } as const;
const citizen = { roles: ['User'], orgType: 'Public' } as const;

it.each([
  ['an administrator gets the platform', administrator, 'platform'],
  ['a member of a Standard organisation gets the platform', member, 'platform'],
  ['a citizen is lowered to consumer', citizen, 'consumer'],
  ['a citizen who insists is refused', { ...citizen, tier: 'platform' }, 'refused'],
  ['an administrator may ask for less', { ...administrator, tier: 'consumer' }, 'consumer'],
  ['the wallet page is for consumers', { ...administrator, returnTo: '/wallet/enrol?x=1' }, 'consumer'],
  ['the wallet page itself too', { ...administrator, returnTo: '/wallet' }, 'consumer'],
  ['a page that only begins like it is not', { ...administrator, returnTo: '/wallets' }, 'platform'],
  ['the application is not', { ...administrator, returnTo: '/app/x' }, 'platform'],
  ['path wins over host', { ...administrator, returnTo: 'https://a.example/app/' }, 'platform'],
  ['another host is for consumers', { ...administrator, returnTo: 'https://a.example/here' }, 'consumer'],
  ['a destination never refuses', { ...citizen, returnTo: '/app' }, 'consumer'],
  ['a public organisation is for consumers', { roles: ['Administrator'], orgType: 'Public' }, 'consumer'],
  ['and refuses who insists', { roles: ['Administrator'], orgType: 'Public', tier: 'platform' }, 'refused'],
] as const)('%s', (_, question, tier) => {
  expect(resolveTier(question)).toBe(tier);
});
