import { z } from 'zod';
import { AppError, violation } from '#core/errors/errors.ts';
import { findMemberAddress } from '#core/ledger/did.ts';
import {
  approvalSchema,
  evidenceSchema,
  OPERATION_TYPES,
  type Operation,
  operationSchema,
  TRANSITION_MODES,
  validatorEntrySchema,
} from '#core/ledger/governance/operation.ts';
import { ROSTER_ROLES } from '#core/ledger/owner-attestation.ts';
import type { Wallets } from '../../clients/wallets.ts';
import { reasonText } from '../../registers/state/texts.ts';

/** A vote that accompanies a request. Its comment is not signed, so it can be normalised. */
export const submittedApproval = approvalSchema.extend({ comment: reasonText.optional() });

/** Accepts one of the words in any case, with `-`, `_` or no separator. */
export function word<const T extends readonly string[]>(words: T): z.ZodType<T[number], unknown> {
  const plain = (text: string): string => text.toLowerCase().replaceAll(/[-_]/g, '');
  return z.preprocess(
    (value) =>
      typeof value === 'string' ? (words.find((each) => plain(each) === plain(value)) ?? value) : value,
    z.enum(words),
  );
}

const key = z.object({ publicKey: z.string().min(1).max(1024), algorithm: z.string().min(1).max(32) });

/** An operation in the ledger's member names; the type determines which of them are required. */
export const operationBody = z.object({
  operationType: word(OPERATION_TYPES),
  proposerDid: z
    .string()
    .max(255)
    .optional()
    .describe('Your own DID; the one with the most powerful role when absent.'),
  targetDid: z.string().max(255).optional(),
  targetRole: word(ROSTER_ROLES).optional(),
  targetKey: key.optional().describe('Of a new member; requested from the wallet service when absent.'),
  validatorId: z.string().max(128).optional(),
  validatorEntry: validatorEntrySchema.optional(),
  evidence: evidenceSchema.optional(),
  policy: z.record(z.string(), z.unknown()).optional(),
  cryptoPolicy: z.record(z.string(), z.unknown()).optional(),
  transitionMode: word(TRANSITION_MODES).optional(),
  justification: reasonText.optional(),
  proposedAt: z.string().max(64).optional().describe('The instant that the enclosed approvals have signed.'),
  expiresAt: z.string().max(64).optional(),
  approvals: z.array(submittedApproval).max(50).optional(),
});
export type OperationRequest = z.output<typeof operationBody>;

/** Members that only some types of operations have. */
const members = [
  'targetDid',
  'targetRole',
  'targetKey',
  'validatorId',
  'validatorEntry',
  'evidence',
  'policy',
  'cryptoPolicy',
  'transitionMode',
  'justification',
  'expiresAt',
] as const;

/** Fills in a new member's key for the roster from the wallet service. */
async function withKey(requested: OperationRequest, wallets: Wallets): Promise<OperationRequest> {
  if (requested.operationType !== 'add-member' || requested.targetKey !== undefined) return requested;
  const address = findMemberAddress(requested.targetDid ?? '');
  const known = address === undefined ? undefined : await wallets.findKey(address);
  if (known === undefined) return requested;
  return { ...requested, targetKey: { publicKey: known.publicKey, algorithm: known.algorithm } };
}

/**
 * The operation for a request body, exactly as it is hashed.
 * @throws AppError invalid INVALID_REQUEST when a member is missing, not part of the operation, or malformed
 */
export async function operationOf(
  requested: OperationRequest,
  facts: { readonly proposerDid: string; readonly now: string },
  wallets: Wallets,
): Promise<Operation> {
  const full = await withKey(requested, wallets);
  const given = members.flatMap((name) => (full[name] === undefined ? [] : [[name, full[name]] as const]));
  const parsed = operationSchema.safeParse({
    operationType: full.operationType,
    proposerDid: facts.proposerDid,
    proposedAt: full.proposedAt ?? facts.now,
    ...Object.fromEntries(given),
    ...(full.approvals !== undefined && { approvalSignatures: full.approvals }),
  });
  if (parsed.success) return parsed.data;
  const violations = parsed.error.issues.map((issue) =>
    violation('INVALID_REQUEST', issue.message, issue.path.join('.')),
  );
  const [first] = violations;
  throw new AppError('invalid', 'INVALID_REQUEST', `${first?.field}: ${first?.message}`);
}

/** Query of routes that remove a validator from its set. */
export const forceQuery = z.object({
  force: z
    .stringbool()
    .default(false)
    .describe(
      'For system administrators: allows the change although fewer operational members than a quorum would remain.',
    ),
});
