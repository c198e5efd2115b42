import type { Migration } from '#kit/db/db.ts';
import { wallets } from './0001-wallets.ts';
import { systemSigner } from './0002-system-signer.ts';
import { events } from './0003-events.ts';
import { idempotencyKeys } from './0004-idempotency-keys.ts';
import { serviceWallets } from './0005-service-wallets.ts';
import { signingBatches } from './0006-signing-batches.ts';
import { organizationKeys } from './0007-organization-keys.ts';
import { holder } from './0009-holder.ts';
import { hubs } from './0010-hubs.ts';
import { keyRevocations } from './0011-key-revocations.ts';
import { heldCredentials } from './0012-held-credentials.ts';

export const migrations: Migration[] = [
  wallets,
  systemSigner,
  events,
  idempotencyKeys,
  serviceWallets,
  signingBatches,
  organizationKeys,
  holder,
  hubs,
  keyRevocations,
  heldCredentials,
];
