import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { listServices } from '#core/identity/services.ts';

/** An image of a program of this project. */
export interface Program {
  readonly name: string;
  readonly description: string;
  /** Path from the root of the repository. */
  readonly main: string;
}

/** Programs that are not in the catalogue of services: they issue identities. */
const others: readonly Program[] = [
  {
    name: 'svid-issuer',
    description: 'SPIFFE identities for ServiceAccounts',
    main: 'components/svid-issuer/main.ts',
  },
];

/** The programs of this working copy: those of the services that exist in it, and others. */
export function findPrograms(root: string, services = listServices()): readonly Program[] {
  const ofServices = services.flatMap(({ name, purpose, main }) =>
    main === undefined ? [] : [{ name, description: purpose, main }],
  );
  return [...ofServices, ...others].filter(({ main }) => existsSync(join(root, main)));
}
