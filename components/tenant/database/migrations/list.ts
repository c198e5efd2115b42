import type { Migration } from '#kit/db/db.ts';
import { accounts } from './0001-accounts.ts';
import { credentials } from './0002-credentials.ts';
import { securityCaps } from './0003-security-caps.ts';
import { wallets } from './0004-wallets.ts';
import { idempotencyAge } from './0005-idempotency-age.ts';
import { organizationResources } from './0006-organization-resources.ts';
import { refusals } from './0007-refusals.ts';
import { inbox } from './0008-inbox.ts';
import { accountHomes } from './0009-account-homes.ts';
import { signInNetworks } from './0010-sign-in-networks.ts';
import { delegatedDecryption } from './0011-delegated-decryption.ts';
import { events } from './0012-events.ts';
import { waysIn } from './0014-ways-in.ts';
import { passwordChange } from './0015-password-change.ts';
import { certificates } from './0016-certificates.ts';
import { trustLists } from './0017-trust-lists.ts';
import { anchorNames } from './0018-anchor-names.ts';
import { requestedEnrolments } from './0019-requested-enrolments.ts';

export const migrations: readonly Migration[] = [
  accounts,
  credentials,
  securityCaps,
  wallets,
  idempotencyAge,
  organizationResources,
  refusals,
  inbox,
  accountHomes,
  signInNetworks,
  delegatedDecryption,
  events,
  waysIn,
  passwordChange,
  certificates,
  trustLists,
  anchorNames,
  requestedEnrolments,
];
