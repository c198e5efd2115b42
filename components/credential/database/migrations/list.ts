import type { Migration } from '#kit/db/db.ts';
import { issuing } from './0001-issuing.ts';
import { credentials } from './0002-credentials.ts';
import { verifying } from './0003-verifying.ts';
import { authorization } from './0004-authorization.ts';
import { audit } from './0005-audit.ts';
import { receivedTexts } from './0006-received-texts.ts';
import { recordedStatuses } from './0007-recorded-statuses.ts';
import { offeredTypes } from './0008-offered-types.ts';
import { boundCodes } from './0009-bound-codes.ts';
import { boundRefreshes } from './0010-bound-refreshes.ts';
import { askedDetails } from './0011-asked-details.ts';

export const migrations: readonly Migration[] = [
  issuing,
  credentials,
  verifying,
  authorization,
  audit,
  receivedTexts,
  recordedStatuses,
  offeredTypes,
  boundCodes,
  boundRefreshes,
  askedDetails,
];
