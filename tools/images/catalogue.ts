import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** An image of one of our programs. */
export interface Program {
  readonly name: string;
  readonly description: string;
  /** From the root of the repository. */
  readonly main: string;
}

const programs: readonly Program[] = [
  { name: 'gateway', description: 'The one entrance for REST clients', main: 'components/gateway/main.ts' },
  { name: 'tenant', description: 'Organisations, users and tokens', main: 'components/tenant/main.ts' },
  { name: 'wallet', description: 'Keys and signatures', main: 'components/wallet/main.ts' },
  { name: 'register', description: 'Registers and their dockets', main: 'components/register/main.ts' },
  { name: 'validator', description: 'Validates, votes and seals', main: 'components/validator/main.ts' },
  {
    name: 'svid-issuer',
    description: 'SPIFFE identities for ServiceAccounts',
    main: 'components/svid-issuer/main.ts',
  },
  { name: 'operator', description: 'Runs registers on Kubernetes', main: 'operator/main.ts' },
];

/** The programs that this working copy has. */
export function findPrograms(root: string): readonly Program[] {
  return programs.filter(({ main }) => existsSync(join(root, main)));
}
