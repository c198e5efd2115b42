import { z } from 'zod';
import { ALGORITHMS } from '../../crypto/algorithm.ts';
import { canonicalJson } from '../../encoding/jcs.ts';
import { AppError } from '../../errors/errors.ts';
import { cryptoPolicySchema, MAX_ROSTER } from '../control-record.ts';
import { ROSTER_ROLES } from '../owner-attestation.ts';
import { parsePolicy, QUORUM_FORMULAS } from '../policy.ts';
import { operationSchema } from './operation.ts';
import { type LedgerRules, VALIDATOR_STATUSES } from './rules.ts';

const text = z.string().min(1);
const count = z.int().min(0);
const algorithm = z.enum(ALGORITHMS);
const key = { publicKey: text, algorithm };

const validatorSchema = z.strictObject({
  validatorId: text,
  ...key,
  status: z.enum(VALIDATOR_STATUSES),
  proofOfPossession: text,
  registeredAt: text,
  approvedAt: text.optional(),
  approvedBy: text.optional(),
  effectiveFromDocket: count,
  ejectAt: text.optional(),
});

const voteSchema = z.strictObject({
  did: text,
  isApproval: z.boolean(),
  txId: text,
  at: text,
  comment: z.string().optional(),
});

const proposalSchema = z.strictObject({
  proposalId: text,
  operation: operationSchema,
  rosterHashBefore: text,
  rosterHashAfter: text,
  status: z.enum(['Pending', 'Approved']),
  openedAt: text,
  openedInDocket: count,
  expiresAt: text,
  quorumFormula: z.enum(QUORUM_FORMULAS),
  eligible: count,
  required: count,
  votes: z.array(voteSchema),
  approvedAt: text.optional(),
});

const rulesSchema = z.strictObject({
  registerId: z.string().regex(/^[0-9a-f]{32}$/),
  name: text,
  description: z.string().optional(),
  purpose: z.enum(['General', 'System']),
  metadata: z.record(z.string(), z.string()),
  createdAt: text,
  systemKey: z.strictObject(key),
  roster: z
    .array(z.strictObject({ role: z.enum(ROSTER_ROLES), subject: text, ...key, grantedAt: text }))
    .min(1)
    .max(MAX_ROSTER),
  rosterVersion: z.int().min(1),
  validators: z.array(validatorSchema).min(1),
  validatorSetVersion: z.int().min(1),
  policy: z.unknown().transform(parsePolicy),
  cryptoPolicy: cryptoPolicySchema,
  proposals: z.array(proposalSchema),
  enacted: z.array(z.strictObject({ operationId: text, expiresAt: text })),
  controlCount: count,
});

/**
 * Parses rules from JSON data as rulesJson writes it.
 * @throws AppError invalid INVALID_RULES
 */
export function parseRules(json: unknown): LedgerRules {
  const result = rulesSchema.safeParse(json);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new AppError('invalid', 'INVALID_RULES', `Rules: ${issue?.path.join('.')} ${issue?.message}`);
}

/** Canonical JSON text of the rules. Equal rules have equal text, and parseRules reads it. */
export function rulesJson(rules: LedgerRules): string {
  return canonicalJson(rules);
}
