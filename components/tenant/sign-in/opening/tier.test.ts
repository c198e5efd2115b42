import { expect, it } from 'vitest';
import { resolveTier } from './tier.ts';

const administrator = { roles: ['Administrator'], orgType: 'Standard' } as const;
const member = { roles: ['User'], orgType: 'Standard' } as const;
const citizen = { roles: ['User'], orgType: 'Public' } as const;

it.each([
  ['an administrator gets the platform', administrator, 'platform'],
  ['a member of a Standard organisation gets the platform', member, 'platform'],
  ['a citizen is lowered to consumer', citizen, 'consumer'],
  ['a citizen who requests platform is refused', { ...citizen, tier: 'platform' }, 'refused'],
  ['an administrator may ask for less', { ...administrator, tier: 'consumer' }, 'consumer'],
  ['the wallet page is for consumers', { ...administrator, returnTo: '/wallet/enrol?x=1' }, 'consumer'],
  ['the root of the wallet page is for consumers', { ...administrator, returnTo: '/wallet' }, 'consumer'],
  [
    'a page with the same prefix is not the wallet page',
    { ...administrator, returnTo: '/wallets' },
    'platform',
  ],
  ['the application is for platform', { ...administrator, returnTo: '/app/x' }, 'platform'],
  [
    'the path has precedence over the host',
    { ...administrator, returnTo: 'https://a.example/app/' },
    'platform',
  ],
  ['another host is for consumers', { ...administrator, returnTo: 'https://a.example/here' }, 'consumer'],
  ['a destination never refuses', { ...citizen, returnTo: '/app' }, 'consumer'],
  ['a public organisation is for consumers', { roles: ['Administrator'], orgType: 'Public' }, 'consumer'],
  [
    'a public organisation refuses an explicit platform request',
    { roles: ['Administrator'], orgType: 'Public', tier: 'platform' },
    'refused',
  ],
] as const)('%s', (_, question, tier) => {
  expect(resolveTier(question)).toBe(tier);
});
