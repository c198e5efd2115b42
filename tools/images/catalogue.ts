import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { listServices } from '#core/identity/services.ts';

/** An image of one of our programs. */
export interface Program {
  readonly name: string;
  readonly description: string;
  /** From the root of the repository. */
  readonly main: string;
}

/** Programs that are no services: they give identities, and have none of the catalogue's. */
const others: readonly Program[] = [
  {
    name: 'svid-issuer',
    description: 'SPIFFE identities for ServiceAccounts',
    main: 'components/svid-issuer/main.ts',
  },
];

const programs: readonly Program[] = [
  ...listServices().flatMap(({ name, purpose, main }) =>
    main === undefined ? [] : [{ name, description: purpose, main }],
  ),
  ...others,
];

/** The programs that this working copy has. */
export function findPrograms(root: string): readonly Program[] {
  return programs.filter(({ main }) => existsSync(join(root, main)));
}
