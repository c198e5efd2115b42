import { encodeBase64 } from '#core/encoding/base64.ts';
import { canonicalJson } from '#core/encoding/jcs.ts';
import { formatLedgerTimestamp, parseTimestamp, ticksToMicros } from '#core/encoding/timestamp.ts';
import { signBytes } from '#core/ledger/consensus.ts';
import { type GovernanceDraft, governanceDraft } from '#core/ledger/governance/build.ts';
import { CONTROL_ACTIONS, type ControlContext } from '#core/ledger/governance/control.ts';
import {
  type Approval,
  approvalDigest,
  type Evidence,
  OPERATION_TYPES,
  type Operation,
  type OperationType,
  type ValidatorEntry,
} from '#core/ledger/governance/operation.ts';
import { applyEffect } from '#core/ledger/governance/operations.ts';
import { type LedgerRules, rosterHash, votersOf } from '#core/ledger/governance/rules.ts';
import { ROSTER_ROLES } from '#core/ledger/owner-attestation.ts';
import { possessionBytes } from '#core/ledger/possession.ts';
import type { Cast, Person } from './history-cast.ts';
import type { Chance } from './history-chance.ts';

/** A control transaction that somebody wants to send. */
export interface Draft extends Omit<GovernanceDraft, 'payload'> {
  readonly payloadText: string;
  readonly signers: readonly Person[];
}

/** Where a history stands. */
export interface Situation {
  readonly chance: Chance;
  readonly cast: Cast;
  readonly rules: LedgerRules;
  readonly context: ControlContext;
}

type Loose = Readonly<Record<string, unknown>>;

const HASH = 'ab'.repeat(32);

function shifted(timestamp: string, seconds: number): string {
  return formatLedgerTimestamp(ticksToMicros(parseTimestamp(timestamp)) + BigInt(seconds) * 1_000_000n);
}

/** Mostly somebody on the roster who votes, the owner most of all. */
function proposerOf({ chance, cast, rules }: Situation): Person {
  const voters = votersOf(rules).map(({ subject }) => subject);
  const fitting = cast.people.filter(({ did }) => voters.includes(did));
  return chance.isLikely(0.95) ? chance.pick(fitting) : chance.pick(cast.people);
}

function validatorIdOf({ chance, rules }: Situation): string {
  const known = rules.validators.map(({ validatorId }) => validatorId);
  return chance.isLikely(0.8) ? chance.pick(known) : `validator-${chance.below(9)}`;
}

function entryOf({ chance, cast, rules }: Situation, validatorId: string): ValidatorEntry {
  const known = rules.validators.find((each) => each.validatorId === validatorId);
  const own = cast.validatorKeys.find(({ key }) => key.publicKey === known?.publicKey);
  const holder = own !== undefined && chance.isLikely(0.5) ? own : chance.pick(cast.validatorKeys);
  const { publicKey } = holder.key;
  const bytes = possessionBytes({ registerId: rules.registerId, validatorId, publicKey });
  const signer = chance.isLikely(0.95) ? holder.signer : chance.pick(cast.validatorKeys).signer;
  return { validatorId, ...holder.key, proofOfPossession: encodeBase64(signer.sign(bytes)) };
}

function evidenceOf({ chance, cast, rules, context }: Situation, validatorId: string): Evidence {
  if (chance.isLikely(0.3)) {
    const last = chance.isLikely(0.8) ? 10 : 3;
    return { kind: 'missed-slots', dockets: [1, 2, 3, 4, 5, 6, 7, 8, 9, last] };
  }
  const known = rules.validators.find((each) => each.validatorId === validatorId);
  const holder = cast.validatorKeys.find(({ key }) => key.publicKey === known?.publicKey);
  const signer = (holder ?? chance.pick(cast.validatorKeys)).signer;
  const type = chance.pick([1, 2, 3] as const);
  const common = {
    networkId: 'n',
    type,
    height: chance.below(context.docketNumber + 2),
    round: chance.below(3),
  };
  const message = (docketHash: string, polRound: number) => {
    const facts = {
      polRound,
      docket: { docketHash, merkleRoot: HASH, logRoot: HASH },
      validatorSetHash: HASH,
      timestamp: '2026-11-20T15:00:00.0000000+00:00',
    };
    const bytes = signBytes({ ...common, ...facts, registerId: rules.registerId });
    return { ...facts, signature: encodeBase64(signer.sign(bytes)) };
  };
  const otherPolka = type === 1 && common.round > 0 && chance.isLikely(0.5) ? 0 : -1;
  const second = chance.isLikely(0.9) ? 'cd'.repeat(32) : HASH;
  return { kind: 'double-sign', ...common, first: message(HASH, -1), second: message(second, otherPolka) };
}

function nested(levels: number): unknown {
  return levels === 0 ? 1 : [nested(levels - 1)];
}

function policyOf({ chance, rules }: Situation): Loose {
  const { policy } = rules;
  const governance = {
    ...policy.governance,
    quorumFormula: chance.pick(['strict-majority', 'SuperMajority', 'unanimous']),
    proposalTtlDays: 1 + chance.below(9),
    ...(chance.isLikely(0.3) ? { ownerCanBypassQuorum: chance.isLikely(0.5) } : {}),
  };
  const validators = {
    ...policy.validators,
    registrationMode: chance.pick(['public', 'consent']),
    minValidators: 1 + chance.below(3),
    operationalTtlSeconds: 60,
  };
  const consensus = {
    signatureThresholdMin: 1 + chance.below(4),
    precisionMs: chance.pick([500, 500, 50, 49, 0, 2.5]),
  };
  return {
    version: policy.version + chance.pick([1, 1, 1, 1, 1, 0, 2]),
    governance,
    validators,
    ...(chance.isLikely(0.5) ? { consensus } : {}),
    ...(chance.isLikely(0.3) ? { leaderElection: { mechanism: 'rotating', leaderTimeoutMs: null } } : {}),
    ...(chance.isLikely(0.3) ? { later: { ratio: 1e-7, big: 1e21, list: [null, 0.5, -0] } } : {}),
    ...(chance.isLikely(0.1) ? { nested: nested(24 + chance.below(8)) } : {}),
    ...(chance.isLikely(0.05) ? JSON.parse('{"__proto__":1}') : {}),
  };
}

function cryptoPolicyOf({ chance, rules, context }: Situation): Loose {
  const { cryptoPolicy } = rules;
  return {
    ...cryptoPolicy,
    version: cryptoPolicy.version + chance.pick([1, 1, 1, 2]),
    effectiveFrom: context.timestamp,
    devMode: chance.isLikely(0.3),
    enforcementMode: chance.pick(['Strict', 'Permissive']),
    acceptedSignatureAlgorithms: chance.pick([
      ['ED25519'],
      ['ED25519', 'NISTP256'],
      ['ED25519', 'NISTP256', 'RSA-4096'],
    ]),
    requiredSignatureAlgorithms: chance.pick([[], [], ['ED25519']]),
  };
}

/** What an operation of a kind says besides who proposes it and when. */
function membersOf(operationType: OperationType, now: Situation): Loose {
  const { chance, cast } = now;
  const target = chance.pick(cast.people);
  const validatorId = validatorIdOf(now);
  switch (operationType) {
    case 'add-member': {
      const key = chance.isLikely(0.95) ? target.key : chance.pick(cast.people).key;
      return { targetDid: target.did, targetRole: chance.pick(ROSTER_ROLES), targetKey: key };
    }
    case 'change-role':
      return { targetDid: target.did, targetRole: chance.pick(ROSTER_ROLES) };
    case 'remove-member':
    case 'transfer-ownership':
      return { targetDid: target.did };
    case 'add-validator':
    case 'rotate-validator-key':
      return { validatorEntry: entryOf(now, validatorId) };
    case 'remove-validator':
      return { validatorId };
    case 'suspend-validator':
      return chance.isLikely(0.5) ? { validatorId } : { validatorId, evidence: evidenceOf(now, validatorId) };
    case 'policy-update':
      return {
        policy: policyOf(now),
        ...(chance.isLikely(0.7) ? { transitionMode: chance.pick(['immediate', 'grace-period']) } : {}),
      };
    case 'crypto-policy-update':
      return { cryptoPolicy: cryptoPolicyOf(now) };
  }
}

function operationOf(operationType: OperationType, proposer: Person, now: Situation): Operation {
  const { chance, context } = now;
  const proposedAt = shifted(
    context.timestamp,
    chance.isLikely(0.9) ? chance.pick([0, -5, 200]) : chance.pick([-3_600, -86_400 * 3, 400]),
  );
  const operation = {
    operationType,
    proposerDid: proposer.did,
    proposedAt,
    ...(chance.isLikely(0.2)
      ? { expiresAt: shifted(context.timestamp, chance.pick([-10, 600, 900, 86_400 * 2])) }
      : {}),
    ...(chance.isLikely(0.2) ? { justification: 'because € \u{1f511} "so"' } : {}),
    ...(chance.isLikely(0.1) ? { status: 'Pending' } : {}),
    ...membersOf(operationType, now),
  };
  // What the members make together is judged by the shape of the payload.
  return JSON.parse(canonicalJson(operation)) as Operation;
}

/** Approvals of some people: most sound, some of others' keys, some against it, some twice. */
function approvalsOf(operation: Operation, rosterHashBefore: string, now: Situation): Approval[] {
  const { chance, cast, rules } = now;
  const approvers = chance.some(cast.people, chance.pick([0.2, 0.7, 1, 1]));
  const approvals = approvers.map((approver) => {
    const isApproval = chance.isLikely(0.92);
    const facts = { registerId: rules.registerId, approverDid: approver.did, isApproval };
    const digest = approvalDigest({ ...facts, operation, rosterHashBefore });
    const { signer } = chance.isLikely(0.95) ? approver : chance.pick(cast.people);
    const bytes = encodeBase64(signer.signDigest(Buffer.from(digest, 'hex')));
    const signature = chance.isLikely(0.9) ? bytes : bytes.replaceAll('+', '-').replaceAll('/', '_');
    const comment = chance.isLikely(0.1) ? { comment: 'gut so', votedAt: rules.createdAt } : {};
    return { approverDid: approver.did, isApproval, signature, ...comment };
  });
  return chance.isLikely(0.1) ? [...approvals, ...approvals] : approvals;
}

function operationPayload(operationType: OperationType, proposer: Person, now: Situation): Loose {
  const { chance, rules, context } = now;
  const operation = operationOf(operationType, proposer, now);
  const effect = applyEffect(rules, operation, context);
  const after = 'violations' in effect ? rules : effect.rules;
  const hash = (roster: LedgerRules['roster']) =>
    chance.isLikely(0.97) ? rosterHash(rules.registerId, roster) : HASH;
  const rosterHashBefore = hash(rules.roster);
  const approvalSignatures = approvalsOf(operation, rosterHashBefore, now);
  return {
    version: 2,
    operation: chance.isLikely(0.9) ? { ...operation, approvalSignatures } : operation,
    rosterHashBefore,
    rosterHashAfter: hash(after.roster),
  };
}

function signersFor(first: Person, now: Situation): Person[] {
  const { chance, cast } = now;
  if (chance.isLikely(0.02)) return [chance.pick(cast.people)];
  if (chance.isLikely(0.02)) return [cast.system];
  if (chance.isLikely(0.02)) return [first, chance.pick(cast.people)];
  return chance.isLikely(0.8) ? [first] : [first, proposerOf(now)];
}

const byType: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  OPERATION_TYPES.map((type) => [
    type,
    Object.keys(CONTROL_ACTIONS).filter((action) => CONTROL_ACTIONS[action]?.operationType === type),
  ]),
);

function draftOperation(now: Situation): [string, Loose, Person] {
  const { chance } = now;
  const type = chance.pick(OPERATION_TYPES);
  const proposer = proposerOf(now);
  const actions = chance.isLikely(0.97) ? (byType[type] ?? []) : Object.keys(CONTROL_ACTIONS);
  const fitting = actions.filter((action) => action !== 'control.validator.liveness-violation');
  return [chance.pick(fitting), operationPayload(type, proposer, now), proposer];
}

function draftProposal(now: Situation): [string, Loose, Person] {
  const { chance, cast } = now;
  const isLiveness = chance.isLikely(0.15);
  const type = isLiveness ? 'suspend-validator' : chance.pick(OPERATION_TYPES);
  const proposer = chance.isLikely(isLiveness ? 0.5 : 0.02)
    ? chance.pick(cast.validatorKeys)
    : proposerOf(now);
  const action = isLiveness ? 'control.validator.liveness-violation' : 'control.governance.propose';
  const payload = operationPayload(type, proposer, now);
  const bare = { ...payload, operation: withoutApprovals(payload['operation'] as Operation) };
  return [action, chance.isLikely(0.7) ? bare : payload, proposer];
}

/** What a validator or the installation saw, mostly of a validator that is there and in a fresh proposal. */
function draftAccusation(now: Situation): [string, Loose, Person] {
  const { chance, cast, rules } = now;
  const known = cast.validatorKeys.filter((one) =>
    rules.validators.some(({ publicKey, status }) => publicKey === one.key.publicKey && status === 'Active'),
  );
  const observers = [...known, cast.system];
  const proposer = chance.isLikely(0.9) ? chance.pick(observers) : chance.pick(cast.people);
  const payload = operationPayload('suspend-validator', proposer, now);
  const { expiresAt: _end, ...lasting } = withoutApprovals(payload['operation'] as Operation);
  const operation = chance.isLikely(0.9) ? lasting : payload['operation'];
  return ['control.governance.propose', { ...payload, operation }, proposer];
}

function withoutApprovals({ approvalSignatures: _approvals, ...rest }: Operation): Loose {
  return rest;
}

function draftVote(now: Situation): [string, Loose, Person] {
  const { chance, rules } = now;
  const open = chance.isLikely(0.95) ? chance.pick(rules.proposals) : undefined;
  const approvals =
    open === undefined || chance.isLikely(0.5)
      ? {}
      : { approvals: approvalsOf(open.operation, open.rosterHashBefore, now) };
  const decision = chance.isLikely(0.85) ? { decision: chance.isLikely(0.85) ? 'approve' : 'reject' } : {};
  const comment = chance.isLikely(0.2) ? { comment: 'ja' } : {};
  const payload = { version: 2, proposalId: open?.proposalId ?? HASH, ...decision, ...comment, ...approvals };
  return ['control.governance.approve', payload, proposerOf(now)];
}

function draftEnactment(now: Situation): [string, Loose, Person] {
  const { chance, cast, rules } = now;
  const ready = rules.proposals.filter(({ status }) => status === 'Approved');
  const open = chance.pick(ready.length > 0 ? ready : rules.proposals);
  const payload = { version: 2, enactsProposalId: open.proposalId };
  return ['control.governance.enact', payload, chance.isLikely(0.5) ? cast.system : proposerOf(now)];
}

function draftSystem(now: Situation): [string, Loose, Person] {
  const { chance, cast, rules, context } = now;
  const registerId = chance.isLikely(0.97) ? rules.registerId : '0'.repeat(32);
  if (chance.isLikely(0.4)) {
    const title = chance.pick(['Loans', 'Kredite €', 'bad\u0007']);
    const payload = { version: 2, registerId, title, metadata: { sandbox: 'true' } };
    return ['control.register.updatemetadata', payload, cast.system];
  }
  const { cryptoPolicy } = rules;
  const next = { ...cryptoPolicy, version: cryptoPolicy.version + 1, effectiveFrom: context.timestamp };
  const payload = { version: 2, registerId, cryptoPolicy: { ...next, devMode: false } };
  return ['control.crypto.update', payload, cast.system];
}

function draftRegistration(now: Situation): [string, Loose, Person] {
  const { chance, cast, rules } = now;
  const validatorEntry = entryOf(now, `validator-${chance.below(9)}`);
  const holder = cast.validatorKeys.find(({ key }) => key.publicKey === validatorEntry.publicKey);
  const payload = { version: 2, registerId: rules.registerId, validatorEntry };
  const signer = chance.isLikely(0.8) ? (holder ?? cast.system) : chance.pick(cast.people);
  return ['control.validator.register', payload, signer];
}

/** What somebody sends next. */
export function nextDraft(now: Situation): Draft {
  const { chance, rules } = now;
  const isOpen = rules.proposals.length > 0;
  const makers = [
    draftOperation,
    draftOperation,
    draftOperation,
    draftProposal,
    draftAccusation,
    draftSystem,
    draftRegistration,
  ];
  const busy = [
    draftVote,
    draftVote,
    draftVote,
    draftEnactment,
    draftEnactment,
    draftOperation,
    draftProposal,
  ];
  const make = chance.pick(isOpen && chance.isLikely(0.7) ? busy : makers);
  const [actionId, payload, first] = make(now);
  const { payload: _payload, ...envelope } = governanceDraft(actionId, payload);
  return { ...envelope, payloadText: canonicalJson(payload), signers: signersFor(first, now) };
}
