import type { Migration } from '#kit/db/db.ts';
import { wallets } from './0001-wallets.ts';
import { systemSigner } from './0002-system-signer.ts';

export const migrations: Migration[] = [wallets, systemSigner];
