import { z } from 'zod';
import { cryptoPolicySchema as ledgerCryptoPolicy } from '#core/ledger/control-record.ts';
import { policySchema as ledgerPolicy } from '#core/ledger/policy.ts';
import { pageSchema } from '#kit/http/http.ts';
import { submittedFields, voteFields } from '../control/schemas.ts';

const text = z.string();

/** Nulls are dropped before a policy is stored, so none has a stakeAmount. */
const { stakeAmount: _absent, ...validatorFields } = ledgerPolicy.shape.validators.unwrap().shape;

/** A policy with all its defaults; it may have members that this version does not know. */
export const policySchema = ledgerPolicy
  .extend({ validators: z.looseObject(validatorFields) })
  .meta({ id: 'RegisterPolicy' });

export const cryptoPolicySchema = z.object(ledgerCryptoPolicy.shape).meta({ id: 'CryptoPolicy' });

/** Facts of a version of either policy. */
const versionFields = {
  txId: text.describe('The transaction that made this version.'),
  docketNumber: z.int().describe('The docket that sealed it.'),
  effectiveFromDocket: z.int(),
  updatedAt: text.describe('ISO 8601, UTC.'),
  updatedBy: text.nullable().describe('DID of the proposer.'),
};

const policyVersionSchema = z
  .object({ version: z.int(), policy: policySchema, ...versionFields })
  .meta({ id: 'RegisterPolicyVersion' });

const cryptoPolicyVersionSchema = z
  .object({ version: z.int(), cryptoPolicy: cryptoPolicySchema, ...versionFields })
  .meta({ id: 'CryptoPolicyVersion' });

/** A page of versions, under both member names in use by clients. */
function versionsSchema<S extends z.ZodType>(version: S) {
  return pageSchema(version).extend({
    registerId: text,
    versions: z.array(version).describe('The same as items.'),
  });
}

export const policyVersionsSchema = versionsSchema(policyVersionSchema);
export const cryptoPolicyVersionsSchema = versionsSchema(cryptoPolicyVersionSchema);

/** A submitted version of a policy. */
export const submittedPolicySchema = z
  .object({ ...submittedFields, newVersion: z.int(), ...voteFields })
  .meta({ id: 'SubmittedPolicy' });

/** A submitted end of development mode. */
export const submittedModeSchema = z.object({
  ...submittedFields,
  policyVersion: z.int().describe('Version of the crypto policy.'),
  message: text,
});
