import { z } from 'zod';
import { AppError, violation } from '../errors/errors.ts';

export const QUORUM_FORMULAS = ['strict-majority', 'supermajority', 'unanimous'] as const;
export const REGISTRATION_MODES = ['public', 'consent'] as const;
const ELECTION_MECHANISMS = ['rotating', 'raft', 'stake-weighted'] as const;
const MAX_DOCKET_BYTES = 8 * 1024 * 1024;

/** Accepts words in any case, with `-` or `_` or neither, and gives them in the one spelling that is written. */
function word<const T extends readonly string[]>(words: T): z.ZodType<T[number], unknown> {
  const plain = (text: string): string => text.toLowerCase().replaceAll(/[-_]/g, '');
  return z.preprocess((value) => {
    if (typeof value !== 'string') return value;
    return words.find((each) => plain(each) === plain(value)) ?? value;
  }, z.enum(words));
}

const governanceSchema = z.looseObject({
  quorumFormula: word(QUORUM_FORMULAS).default('strict-majority'),
  proposalTtlDays: z.int().min(1).max(90).default(7),
  /** Absent: true for a roster of one voter, false for more. */
  ownerCanBypassQuorum: z.boolean().optional(),
  blueprintVersion: z.string().min(1).max(100).default('register-governance-v1'),
});

const approvedValidatorSchema = z.looseObject({
  did: z.string().min(1).max(255),
  publicKey: z.string().min(1),
  approvedAt: z.string().min(1),
  approvedBy: z.string().optional(),
});

const validatorsSchema = z
  .looseObject({
    registrationMode: word(REGISTRATION_MODES).default('consent'),
    approvedValidators: z.array(approvedValidatorSchema).max(100).default([]),
    minValidators: z.int().min(1).max(100).default(1),
    maxValidators: z.int().min(1).max(100).default(100),
    requireStake: z.literal(false, 'stakes are not supported').default(false),
    stakeAmount: z.null('stakes are not supported').optional(),
    operationalTtlSeconds: z.int().min(10).max(600).default(60),
  })
  .refine((policy) => policy.minValidators <= policy.maxValidators, {
    path: ['minValidators'],
    message: 'minValidators is larger than maxValidators',
  });

const consensusSchema = z
  .looseObject({
    signatureThresholdMin: z.int().min(1).max(100).default(1),
    signatureThresholdMax: z.int().min(1).max(100).default(100),
    maxTransactionsPerDocket: z.int().min(1).max(10_000).default(1000),
    docketBuildIntervalMs: z.int().min(10).max(60_000).default(1000),
    docketTimeoutSeconds: z.int().min(5).max(300).default(30),
    maxDocketBytes: z.int().min(1024).max(MAX_DOCKET_BYTES).default(1_048_576),
    maxTransactionBytes: z.int().min(512).max(MAX_DOCKET_BYTES).default(524_288),
    requireBoundTxId: z.boolean().default(false),
    precisionMs: z.int().min(1).max(60_000).default(500),
    messageDelayMs: z.int().min(1).max(300_000).default(15_000),
    maxPendingPerSender: z.int().min(1).max(10_000).default(256),
  })
  .refine((policy) => policy.signatureThresholdMin <= policy.signatureThresholdMax, {
    path: ['signatureThresholdMin'],
    message: 'signatureThresholdMin is larger than signatureThresholdMax',
  })
  .refine((policy) => policy.maxTransactionBytes * 2 <= policy.maxDocketBytes, {
    path: ['maxTransactionBytes'],
    message: 'maxTransactionBytes is more than half of maxDocketBytes',
  });

const leaderElectionSchema = z
  .looseObject({
    mechanism: word(ELECTION_MECHANISMS).default('rotating'),
    heartbeatIntervalMs: z.int().min(100).max(30_000).default(1000),
    leaderTimeoutMs: z.int().min(101).max(300_000).default(3000),
    termDurationSeconds: z.int().min(10).nullish(),
  })
  .refine((policy) => policy.leaderTimeoutMs > policy.heartbeatIntervalMs, {
    path: ['leaderTimeoutMs'],
    message: 'leaderTimeoutMs is not larger than heartbeatIntervalMs',
  });

/** Schema of a policy. parsePolicy judges one. */
export const policySchema = z.looseObject({
  version: z.int().min(1).default(1),
  governance: governanceSchema.prefault({}),
  validators: validatorsSchema.prefault({}),
  consensus: consensusSchema.prefault({}),
  leaderElection: leaderElectionSchema.prefault({}),
  updatedAt: z.string().optional(),
  updatedBy: z.string().optional(),
});

/**
 * Rules of one register, each with its range and default. Unknown members are kept, so that an update by a newer
 * program does not lose them.
 */
export type RegisterPolicy = z.output<typeof policySchema>;

/** Drops null members at every depth, because hashed data contains no null for an absent member. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value).filter((entry) => entry[1] !== null);
  return Object.fromEntries(kept.map(([name, member]) => [name, withoutNulls(member)]));
}

/**
 * Parses a policy from JSON data and fills in defaults.
 * @throws AppError invalid INVALID_POLICY with one violation a field; unprocessable MECHANISM_NOT_SUPPORTED for a
 * leader election other than rotating
 */
export function parsePolicy(value: unknown): RegisterPolicy {
  const result = policySchema.safeParse(withoutNulls(value));
  if (!result.success) {
    const violations = result.error.issues.map((issue) =>
      violation('INVALID_POLICY', issue.message, `policy.${issue.path.join('.')}`),
    );
    const first = violations[0];
    const message = `Policy is not valid: ${first?.field ?? 'policy'}: ${first?.message ?? 'malformed'}`;
    throw new AppError('invalid', 'INVALID_POLICY', message, { violations });
  }
  if (result.data.leaderElection.mechanism !== 'rotating') {
    throw new AppError(
      'unprocessable',
      'MECHANISM_NOT_SUPPORTED',
      'Only the rotating mechanism is supported',
    );
  }
  return result.data;
}

/** The policy of a register that is created without one. */
export function defaultPolicy(): RegisterPolicy {
  return parsePolicy({});
}

/** With less than this no docket is ever timely, or no transaction is small enough to change the policy back. */
const LEAST = { precisionMs: 50, messageDelayMs: 1000, maxTransactionBytes: 16_384 } as const;

/**
 * Finds the member of a policy that would stop its register for good, with its minimum; undefined when there is none.
 */
export function findDeadlock({
  consensus,
}: RegisterPolicy): { readonly field: string; readonly least: number } | undefined {
  const names = ['precisionMs', 'messageDelayMs', 'maxTransactionBytes'] as const;
  const name = names.find((each) => consensus[each] < LEAST[each]);
  return name === undefined ? undefined : { field: `consensus.${name}`, least: LEAST[name] };
}

/** Whether the policy has not changed since the register was created. */
export function isDefaultPolicy(policy: RegisterPolicy): boolean {
  return policy.version === 1 && policy.updatedBy === undefined;
}

/** Whether an owner may decide alone, by policy or by the size of the roster. */
export function ownerMayBypass(policy: RegisterPolicy, voters: number): boolean {
  return policy.governance.ownerCanBypassQuorum ?? voters <= 1;
}
