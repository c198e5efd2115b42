import { z } from 'zod';
import { integer, withRules } from './fields.ts';

/**
 * The policy of a register, with the specification's names and units; enum values are in PascalCase, as Kubernetes APIs
 * write them. No member has a default: an absent member keeps the ledger's value. Below these lower bounds a policy would
 * stop its register for good (core/ledger/policy.ts).
 */

const governance = z.strictObject({
  quorumFormula: z
    .enum(['StrictMajority', 'Supermajority', 'Unanimous'])
    .optional()
    .describe('Share of the roster that must agree to a change.'),
  proposalTtlDays: integer(1, 90).optional().describe('Days until a proposal expires.'),
  ownerCanBypassQuorum: z.boolean().optional().describe('Whether the owner decides alone.'),
});

const validators = withRules(
  z.strictObject({
    registrationMode: z.enum(['Public', 'Consent']).optional().describe('Whether validators need approval.'),
    minValidators: integer(1, 100).optional().describe('Smallest number of validators.'),
    maxValidators: integer(1, 100).optional().describe('Largest number of validators.'),
    operationalTtlSeconds: integer(10, 600)
      .optional()
      .describe('Seconds after which a silent validator counts as not operational.'),
  }),
  {
    cel: '!has(self.minValidators) || !has(self.maxValidators) || self.minValidators <= self.maxValidators',
    message: 'minValidators is larger than maxValidators; raise maxValidators',
    holds: ({ minValidators = 1, maxValidators = 100 }) => minValidators <= maxValidators,
    path: 'minValidators',
  },
);

const consensus = withRules(
  z.strictObject({
    signatureThresholdMin: integer(1, 100).optional().describe('Smallest number of signatures of a docket.'),
    signatureThresholdMax: integer(1, 100).optional().describe('Largest number of signatures of a docket.'),
    maxTransactionsPerDocket: integer(1, 10_000)
      .optional()
      .describe('Largest number of transactions of a docket.'),
    docketBuildIntervalMs: integer(10, 60_000)
      .optional()
      .describe('Longest time in milliseconds that transactions are collected before a docket is proposed.'),
    docketTimeoutSeconds: integer(5, 300).optional().describe('Timeout of a vote, in seconds.'),
    maxDocketBytes: integer(32_768, 8_388_608).optional().describe('Largest size of a docket, in bytes.'),
    maxTransactionBytes: integer(16_384, 4_194_304)
      .optional()
      .describe('Largest size of a transaction, in bytes; at most half of maxDocketBytes.'),
    requireBoundTxId: z
      .boolean()
      .optional()
      .describe('Whether the id of a transaction must be the hash of its envelope.'),
    precisionMs: integer(50, 60_000)
      .optional()
      .describe('Largest tolerated difference of clocks, in milliseconds.'),
    messageDelayMs: integer(1000, 300_000)
      .optional()
      .describe('Largest tolerated delay of a message, in milliseconds.'),
    maxPendingPerSender: integer(1, 10_000)
      .optional()
      .describe('Largest number of waiting transactions of one sender.'),
  }),
  {
    cel: [
      '!has(self.signatureThresholdMin) || !has(self.signatureThresholdMax)',
      'self.signatureThresholdMin <= self.signatureThresholdMax',
    ].join(' || '),
    message: 'signatureThresholdMin is larger than signatureThresholdMax; raise signatureThresholdMax',
    holds: ({ signatureThresholdMin = 1, signatureThresholdMax = 100 }) =>
      signatureThresholdMin <= signatureThresholdMax,
    path: 'signatureThresholdMin',
  },
  {
    cel: [
      '!has(self.maxTransactionBytes) || !has(self.maxDocketBytes)',
      'self.maxTransactionBytes * 2 <= self.maxDocketBytes',
    ].join(' || '),
    message: 'maxTransactionBytes is more than half of maxDocketBytes; raise maxDocketBytes',
    holds: ({ maxTransactionBytes, maxDocketBytes }) =>
      maxTransactionBytes === undefined ||
      maxDocketBytes === undefined ||
      maxTransactionBytes * 2 <= maxDocketBytes,
    path: 'maxTransactionBytes',
  },
);

const leaderElection = withRules(
  z.strictObject({
    mechanism: z.enum(['Rotating']).optional().describe('How proposers are chosen.'),
    heartbeatIntervalMs: integer(100, 30_000).optional().describe('Time between heartbeats in milliseconds.'),
    leaderTimeoutMs: integer(101, 300_000)
      .optional()
      .describe('Milliseconds until a silent proposer is skipped.'),
    termDurationSeconds: integer(10, 86_400).optional().describe('Longest term of a proposer, in seconds.'),
  }),
  {
    cel: [
      '!has(self.leaderTimeoutMs) || !has(self.heartbeatIntervalMs)',
      'self.leaderTimeoutMs > self.heartbeatIntervalMs',
    ].join(' || '),
    message: 'leaderTimeoutMs is not larger than heartbeatIntervalMs; raise leaderTimeoutMs',
    holds: ({ leaderTimeoutMs, heartbeatIntervalMs }) =>
      leaderTimeoutMs === undefined ||
      heartbeatIntervalMs === undefined ||
      leaderTimeoutMs > heartbeatIntervalMs,
    path: 'leaderTimeoutMs',
  },
);

export const registerPolicy = z.strictObject({
  governance: governance.optional().describe('Governance of the roster.'),
  validators: validators.optional().describe('Admission of validators.'),
  consensus: consensus.optional().describe('Limits and timeouts of consensus.'),
  leaderElection: leaderElection.optional().describe('Rotation of proposers.'),
});
