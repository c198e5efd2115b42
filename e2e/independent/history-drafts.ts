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
import type { Random } from '#kit/testing/random.ts';
import type { Cast, Person } from './history-cast.ts';

/** A control transaction to send. */
export interface Draft extends Omit<GovernanceDraft, 'payload'> {
  readonly payloadText: string;
  readonly signers: readonly Person[];
}

/** The present state of a history. */
export interface Situation {
  readonly random: Random;
  readonly cast: Cast;
  readonly rules: LedgerRules;
  readonly context: ControlContext;
}

type Loose = Readonly<Record<string, unknown>>;

const HASH = 'ab'.repeat(32);

function shifted(timestamp: string, seconds: number): string {
  return formatLedgerTimestamp(ticksToMicros(parseTimestamp(timestamp)) + BigInt(seconds) * 1_000_000n);
}

/** Mostly a voting member of the roster, and the owner most often. */
function proposerOf({ random, cast, rules }: Situation): Person {
  const voters = votersOf(rules).map(({ subject }) => subject);
  const fitting = cast.people.filter(({ did }) => voters.includes(did));
  return random.chance(0.95) ? random.pick(fitting) : random.pick(cast.people);
}

function validatorIdOf({ random, rules }: Situation): string {
  const known = rules.validators.map(({ validatorId }) => validatorId);
  return random.chance(0.8) ? random.pick(known) : `validator-${random.whole(0, 8)}`;
}

function entryOf({ random, cast, rules }: Situation, validatorId: string): ValidatorEntry {
  const known = rules.validators.find((each) => each.validatorId === validatorId);
  const own = cast.validatorKeys.find(({ key }) => key.publicKey === known?.publicKey);
  const holder = own !== undefined && random.chance(0.5) ? own : random.pick(cast.validatorKeys);
  const { publicKey } = holder.key;
  const bytes = possessionBytes({ registerId: rules.registerId, validatorId, publicKey });
  const signer = random.chance(0.95) ? holder.signer : random.pick(cast.validatorKeys).signer;
  return { validatorId, ...holder.key, proofOfPossession: encodeBase64(signer.sign(bytes)) };
}

function evidenceOf({ random, cast, rules, context }: Situation, validatorId: string): Evidence {
  if (random.chance(0.3)) {
    const last = random.chance(0.8) ? 10 : 3;
    return { kind: 'missed-slots', dockets: [1, 2, 3, 4, 5, 6, 7, 8, 9, last] };
  }
  const known = rules.validators.find((each) => each.validatorId === validatorId);
  const holder = cast.validatorKeys.find(({ key }) => key.publicKey === known?.publicKey);
  const signer = (holder ?? random.pick(cast.validatorKeys)).signer;
  const type = random.pick([1, 2, 3] as const);
  const common = {
    networkId: 'n',
    type,
    height: random.whole(0, context.docketNumber + 1),
    round: random.whole(0, 2),
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
  const otherPolka = type === 1 && common.round > 0 && random.chance(0.5) ? 0 : -1;
  const second = random.chance(0.9) ? 'cd'.repeat(32) : HASH;
  return { kind: 'double-sign', ...common, first: message(HASH, -1), second: message(second, otherPolka) };
}

function nested(levels: number): unknown {
  return levels === 0 ? 1 : [nested(levels - 1)];
}

function policyOf({ random, rules }: Situation): Loose {
  const { policy } = rules;
  const governance = {
    ...policy.governance,
    quorumFormula: random.pick(['strict-majority', 'SuperMajority', 'unanimous']),
    proposalTtlDays: random.whole(1, 9),
    ...(random.chance(0.3) ? { ownerCanBypassQuorum: random.chance(0.5) } : {}),
  };
  const validators = {
    ...policy.validators,
    registrationMode: random.pick(['public', 'consent']),
    minValidators: random.whole(1, 3),
    operationalTtlSeconds: 60,
  };
  const consensus = {
    signatureThresholdMin: random.whole(1, 4),
    precisionMs: random.pick([500, 500, 50, 49, 0, 2.5]),
  };
  return {
    version: policy.version + random.pick([1, 1, 1, 1, 1, 0, 2]),
    governance,
    validators,
    ...(random.chance(0.5) ? { consensus } : {}),
    ...(random.chance(0.3) ? { leaderElection: { mechanism: 'rotating', leaderTimeoutMs: null } } : {}),
    ...(random.chance(0.3) ? { later: { ratio: 1e-7, big: 1e21, list: [null, 0.5, -0] } } : {}),
    ...(random.chance(0.1) ? { nested: nested(random.whole(24, 31)) } : {}),
    ...(random.chance(0.05) ? JSON.parse('{"__proto__":1}') : {}),
  };
}

function cryptoPolicyOf({ random, rules, context }: Situation): Loose {
  const { cryptoPolicy } = rules;
  return {
    ...cryptoPolicy,
    version: cryptoPolicy.version + random.pick([1, 1, 1, 2]),
    effectiveFrom: context.timestamp,
    devMode: random.chance(0.3),
    enforcementMode: random.pick(['Strict', 'Permissive']),
    acceptedSignatureAlgorithms: random.pick([
      ['ED25519'],
      ['ED25519', 'NISTP256'],
      ['ED25519', 'NISTP256', 'RSA-4096'],
    ]),
    requiredSignatureAlgorithms: random.pick([[], [], ['ED25519']]),
  };
}

/** Members of an operation of a kind, besides its proposer and its time. */
function membersOf(operationType: OperationType, now: Situation): Loose {
  const { random, cast } = now;
  const target = random.pick(cast.people);
  const validatorId = validatorIdOf(now);
  switch (operationType) {
    case 'add-member': {
      const key = random.chance(0.95) ? target.key : random.pick(cast.people).key;
      return { targetDid: target.did, targetRole: random.pick(ROSTER_ROLES), targetKey: key };
    }
    case 'change-role':
      return { targetDid: target.did, targetRole: random.pick(ROSTER_ROLES) };
    case 'remove-member':
    case 'transfer-ownership':
      return { targetDid: target.did };
    case 'add-validator':
    case 'rotate-validator-key':
      return { validatorEntry: entryOf(now, validatorId) };
    case 'remove-validator':
      return { validatorId };
    case 'suspend-validator':
      return random.chance(0.5) ? { validatorId } : { validatorId, evidence: evidenceOf(now, validatorId) };
    case 'policy-update':
      return {
        policy: policyOf(now),
        ...(random.chance(0.7) ? { transitionMode: random.pick(['immediate', 'grace-period']) } : {}),
      };
    case 'crypto-policy-update':
      return { cryptoPolicy: cryptoPolicyOf(now) };
  }
}

function operationOf(operationType: OperationType, proposer: Person, now: Situation): Operation {
  const { random, context } = now;
  const proposedAt = shifted(
    context.timestamp,
    random.chance(0.9) ? random.pick([0, -5, 200]) : random.pick([-3_600, -86_400 * 3, 400]),
  );
  const operation = {
    operationType,
    proposerDid: proposer.did,
    proposedAt,
    ...(random.chance(0.2)
      ? { expiresAt: shifted(context.timestamp, random.pick([-10, 600, 900, 86_400 * 2])) }
      : {}),
    ...(random.chance(0.2) ? { justification: 'because € \u{1f511} "so"' } : {}),
    ...(random.chance(0.1) ? { status: 'Pending' } : {}),
    ...membersOf(operationType, now),
  };
  // The schema of the payload judges the combination of the members.
  return JSON.parse(canonicalJson(operation)) as Operation;
}

/** Approvals of some people: most are valid, some use others' keys, some reject, some are repeated. */
function approvalsOf(operation: Operation, rosterHashBefore: string, now: Situation): Approval[] {
  const { random, cast, rules } = now;
  const willing = random.pick([0.2, 0.7, 1, 1]);
  const approvers = cast.people.filter(() => random.chance(willing));
  const approvals = approvers.map((approver) => {
    const isApproval = random.chance(0.92);
    const facts = { registerId: rules.registerId, approverDid: approver.did, isApproval };
    const digest = approvalDigest({ ...facts, operation, rosterHashBefore });
    const { signer } = random.chance(0.95) ? approver : random.pick(cast.people);
    const bytes = encodeBase64(signer.signDigest(Buffer.from(digest, 'hex')));
    const signature = random.chance(0.9) ? bytes : bytes.replaceAll('+', '-').replaceAll('/', '_');
    const comment = random.chance(0.1) ? { comment: 'gut so', votedAt: rules.createdAt } : {};
    return { approverDid: approver.did, isApproval, signature, ...comment };
  });
  return random.chance(0.1) ? [...approvals, ...approvals] : approvals;
}

function operationPayload(operationType: OperationType, proposer: Person, now: Situation): Loose {
  const { random, rules, context } = now;
  const operation = operationOf(operationType, proposer, now);
  const effect = applyEffect(rules, operation, context);
  const after = 'violations' in effect ? rules : effect.rules;
  const hash = (roster: LedgerRules['roster']) =>
    random.chance(0.97) ? rosterHash(rules.registerId, roster) : HASH;
  const rosterHashBefore = hash(rules.roster);
  const approvalSignatures = approvalsOf(operation, rosterHashBefore, now);
  return {
    version: 2,
    operation: random.chance(0.9) ? { ...operation, approvalSignatures } : operation,
    rosterHashBefore,
    rosterHashAfter: hash(after.roster),
  };
}

function signersFor(first: Person, now: Situation): Person[] {
  const { random, cast } = now;
  if (random.chance(0.02)) return [random.pick(cast.people)];
  if (random.chance(0.02)) return [cast.system];
  if (random.chance(0.02)) return [first, random.pick(cast.people)];
  return random.chance(0.8) ? [first] : [first, proposerOf(now)];
}

const byType: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  OPERATION_TYPES.map((type) => [
    type,
    Object.keys(CONTROL_ACTIONS).filter((action) => CONTROL_ACTIONS[action]?.operationType === type),
  ]),
);

function draftOperation(now: Situation): [string, Loose, Person] {
  const { random } = now;
  const type = random.pick(OPERATION_TYPES);
  const proposer = proposerOf(now);
  const actions = random.chance(0.97) ? (byType[type] ?? []) : Object.keys(CONTROL_ACTIONS);
  const fitting = actions.filter((action) => action !== 'control.validator.liveness-violation');
  return [random.pick(fitting), operationPayload(type, proposer, now), proposer];
}

function draftProposal(now: Situation): [string, Loose, Person] {
  const { random, cast } = now;
  const isLiveness = random.chance(0.15);
  const type = isLiveness ? 'suspend-validator' : random.pick(OPERATION_TYPES);
  const proposer = random.chance(isLiveness ? 0.5 : 0.02) ? random.pick(cast.validatorKeys) : proposerOf(now);
  const action = isLiveness ? 'control.validator.liveness-violation' : 'control.governance.propose';
  const payload = operationPayload(type, proposer, now);
  const bare = { ...payload, operation: withoutApprovals(payload['operation'] as Operation) };
  return [action, random.chance(0.7) ? bare : payload, proposer];
}

/** Evidence of a validator or the installation, mostly about a present validator and in a fresh proposal. */
function draftAccusation(now: Situation): [string, Loose, Person] {
  const { random, cast, rules } = now;
  const known = cast.validatorKeys.filter((one) =>
    rules.validators.some(({ publicKey, status }) => publicKey === one.key.publicKey && status === 'Active'),
  );
  const observers = [...known, cast.system];
  const proposer = random.chance(0.9) ? random.pick(observers) : random.pick(cast.people);
  const payload = operationPayload('suspend-validator', proposer, now);
  const { expiresAt: _end, ...lasting } = withoutApprovals(payload['operation'] as Operation);
  const operation = random.chance(0.9) ? lasting : payload['operation'];
  return ['control.governance.propose', { ...payload, operation }, proposer];
}

function withoutApprovals({ approvalSignatures: _approvals, ...rest }: Operation): Loose {
  return rest;
}

function draftVote(now: Situation): [string, Loose, Person] {
  const { random, rules } = now;
  const open = random.chance(0.95) ? random.pick(rules.proposals) : undefined;
  const approvals =
    open === undefined || random.chance(0.5)
      ? {}
      : { approvals: approvalsOf(open.operation, open.rosterHashBefore, now) };
  const decision = random.chance(0.85) ? { decision: random.chance(0.85) ? 'approve' : 'reject' } : {};
  const comment = random.chance(0.2) ? { comment: 'ja' } : {};
  const payload = { version: 2, proposalId: open?.proposalId ?? HASH, ...decision, ...comment, ...approvals };
  return ['control.governance.approve', payload, proposerOf(now)];
}

function draftEnactment(now: Situation): [string, Loose, Person] {
  const { random, cast, rules } = now;
  const ready = rules.proposals.filter(({ status }) => status === 'Approved');
  const open = random.pick(ready.length > 0 ? ready : rules.proposals);
  const payload = { version: 2, enactsProposalId: open.proposalId };
  return ['control.governance.enact', payload, random.chance(0.5) ? cast.system : proposerOf(now)];
}

function draftSystem(now: Situation): [string, Loose, Person] {
  const { random, cast, rules, context } = now;
  const registerId = random.chance(0.97) ? rules.registerId : '0'.repeat(32);
  if (random.chance(0.4)) {
    const title = random.pick(['Loans', 'Kredite €', 'bad\u0007']);
    const payload = { version: 2, registerId, title, metadata: { sandbox: 'true' } };
    return ['control.register.updatemetadata', payload, cast.system];
  }
  const { cryptoPolicy } = rules;
  const next = { ...cryptoPolicy, version: cryptoPolicy.version + 1, effectiveFrom: context.timestamp };
  const payload = { version: 2, registerId, cryptoPolicy: { ...next, devMode: false } };
  return ['control.crypto.update', payload, cast.system];
}

function draftRegistration(now: Situation): [string, Loose, Person] {
  const { random, cast, rules } = now;
  const validatorEntry = entryOf(now, `validator-${random.whole(0, 8)}`);
  const holder = cast.validatorKeys.find(({ key }) => key.publicKey === validatorEntry.publicKey);
  const payload = { version: 2, registerId: rules.registerId, validatorEntry };
  const signer = random.chance(0.8) ? (holder ?? cast.system) : random.pick(cast.people);
  return ['control.validator.register', payload, signer];
}

/** The next transaction that a participant sends. */
export function nextDraft(now: Situation): Draft {
  const { random, rules } = now;
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
  const make = random.pick(isOpen && random.chance(0.7) ? busy : makers);
  const [actionId, payload, first] = make(now);
  const { payload: _payload, ...envelope } = governanceDraft(actionId, payload);
  return { ...envelope, payloadText: canonicalJson(payload), signers: signersFor(first, now) };
}
