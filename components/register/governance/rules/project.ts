import { canonicalJson } from '#core/encoding/jcs.ts';
import type { ProposalChange, RulesChange } from '#core/ledger/governance/control.ts';
import type { Operation as LedgerOperation } from '#core/ledger/governance/operation.ts';
import { activeMembers, type LedgerRules } from '#core/ledger/governance/rules.ts';
import { rulesJson } from '#core/ledger/governance/rules-json.ts';
import type { OperationEvent } from '../../database/schema.ts';
import type { FoldedDocket, FoldStep, PlacedRecord } from './fold.ts';
import type { Operation, PolicyVersion, Projection, ProposalRow } from './store.ts';

interface SealingDocket {
  readonly docketNumber: number;
  readonly timestamp: string;
}

function policyRow(
  rules: LedgerRules,
  { docketNumber, timestamp }: SealingDocket,
  txId: string,
): PolicyVersion {
  const { policy } = rules;
  return {
    kind: 'policy',
    version: policy.version,
    document: canonicalJson(policy),
    docketNumber,
    txId,
    updatedAt: policy.updatedAt ?? timestamp,
    updatedBy: policy.updatedBy,
  };
}

function cryptoRow(
  rules: LedgerRules,
  { docketNumber, timestamp }: SealingDocket,
  by: { readonly txId: string; readonly did: string | undefined },
): PolicyVersion {
  const { cryptoPolicy } = rules;
  return {
    kind: 'crypto',
    version: cryptoPolicy.version,
    document: canonicalJson(cryptoPolicy),
    docketNumber,
    txId: by.txId,
    updatedAt: timestamp,
    updatedBy: by.did,
  };
}

/** The first policies of a register, and each later version. */
function policiesOf(folded: FoldedDocket): PolicyVersion[] {
  const { genesis, after, steps } = folded;
  if (genesis !== undefined) {
    const { txId } = genesis.record;
    return [policyRow(after, folded, txId), cryptoRow(after, folded, { txId, did: undefined })];
  }
  return steps.flatMap((step) => {
    const { txId } = step.placed.record;
    const did = step.change?.operation?.proposerDid;
    return [
      ...(step.after.policy === step.before.policy ? [] : [policyRow(step.after, folded, txId)]),
      ...(step.after.cryptoPolicy === step.before.cryptoPolicy
        ? []
        : [cryptoRow(step.after, folded, { txId, did })]),
    ];
  });
}

/** The target of an operation: a member's DID or a validator's id. */
export function targetOf(operation: LedgerOperation): string | undefined {
  if ('targetDid' in operation) return operation.targetDid;
  if ('validatorEntry' in operation) return operation.validatorEntry.validatorId;
  return 'validatorId' in operation ? operation.validatorId : undefined;
}

/** The event of a control transaction, as one word of the history. */
function eventOf({ kind, operation, proposals }: RulesChange): OperationEvent {
  if (operation !== undefined) return 'enacted';
  if (kind !== 'proposal') return 'changed';
  const [proposal] = proposals.map((one) => one.proposal);
  if (proposal?.status === 'Rejected') return 'rejected';
  return proposals.some((one) => one.txId === one.proposal.proposalId) ? 'proposed' : 'voted';
}

function newMembers(before: LedgerRules, after: LedgerRules): string | undefined {
  const known = new Set(before.validators.map((each) => each.validatorId));
  return after.validators.find((each) => !known.has(each.validatorId))?.validatorId;
}

function operationRow(step: FoldStep, change: RulesChange, docket: SealingDocket): Operation {
  const { record, position } = step.placed;
  const proposal = change.proposals[0]?.proposal;
  const operation = change.operation ?? proposal?.operation;
  const detail = {
    event: eventOf(change),
    actionId: record.actionId,
    senderAddress: record.senderAddress,
    parts: change.parts,
    ...(operation !== undefined && { operation }),
    ...(proposal !== undefined && { proposalStatus: proposal.status }),
  };
  return {
    docketNumber: docket.docketNumber,
    position,
    txId: record.txId,
    operationType: operation?.operationType ?? change.kind,
    proposalId: proposal?.proposalId,
    proposer: operation?.proposerDid,
    target: operation === undefined ? newMembers(step.before, step.after) : targetOf(operation),
    detail,
    sealedAt: docket.timestamp,
  };
}

function genesisRow({ record, position }: PlacedRecord, docket: SealingDocket): Operation {
  return {
    docketNumber: docket.docketNumber,
    position,
    txId: record.txId,
    operationType: 'genesis',
    proposalId: undefined,
    proposer: undefined,
    target: undefined,
    detail: { event: 'enacted', actionId: record.actionId, senderAddress: record.senderAddress },
    sealedAt: docket.timestamp,
  };
}

/** An ejection has no transaction: its rows precede those of the docket. */
function ejectedRow(validatorId: string, index: number, docket: SealingDocket): Operation {
  return {
    docketNumber: docket.docketNumber,
    position: -1 - index,
    txId: '',
    operationType: 'remove-validator',
    proposalId: undefined,
    proposer: undefined,
    target: validatorId,
    detail: { event: 'ejected', parts: ['validators'] },
    sealedAt: docket.timestamp,
  };
}

function operationsOf(folded: FoldedDocket): Operation[] {
  const { genesis, steps, ejected } = folded;
  return [
    ...(genesis === undefined ? [] : [genesisRow(genesis, folded)]),
    ...ejected.map((validatorId, index) => ejectedRow(validatorId, index, folded)),
    ...steps.flatMap((step) => (step.change === undefined ? [] : [operationRow(step, step.change, folded)])),
  ];
}

function proposalRow(proposal: ProposalChange['proposal'], { docketNumber }: SealingDocket): ProposalRow {
  const isOpen = proposal.status === 'Pending' || proposal.status === 'Approved';
  return {
    proposalId: proposal.proposalId,
    status: proposal.status,
    openedDocket: proposal.openedInDocket,
    closedDocket: isOpen ? undefined : docketNumber,
    expiresAt: proposal.expiresAt,
    proposal: canonicalJson(proposal),
  };
}

/** The final state of each proposal that the docket touched; one that disappeared without an event is expired. */
function proposalsOf(folded: FoldedDocket): ProposalRow[] {
  const changed = [...folded.steps.flatMap((step) => step.change?.proposals ?? []), ...folded.expired];
  const rows = new Map(changed.map(({ proposal }) => [proposal.proposalId, proposalRow(proposal, folded)]));
  const open = new Set(folded.after.proposals.map((one) => one.proposalId));
  for (const proposal of folded.before?.proposals ?? []) {
    const { proposalId } = proposal;
    if (open.has(proposalId) || rows.has(proposalId)) continue;
    rows.set(proposalId, proposalRow({ ...proposal, status: 'Expired' }, folded));
  }
  return [...rows.values()];
}

/** The changes of a folded docket as rows; undefined when there are none. */
export function projectionOf(folded: FoldedDocket): Projection | undefined {
  const { before, after, docketNumber } = folded;
  if (before === after) return undefined;
  const now = activeMembers(after);
  const old = before === undefined ? now : activeMembers(before);
  const key = (one: (typeof now)[number]) => `${one.validatorId} ${one.algorithm} ${one.publicKey}`;
  const oldKeys = new Set(old.map(key));
  const nowKeys = new Set(now.map(key));
  return {
    docketNumber,
    rulesText: rulesJson(after),
    facts: {
      title: after.name,
      description: after.description,
      metadata: after.metadata,
      policyText: canonicalJson(after.policy),
      policyVersion: after.policy.version,
      devMode: after.cryptoPolicy.devMode,
      validatorSetVersion: after.validatorSetVersion,
    },
    joined: now.filter((one) => !oldKeys.has(key(one))),
    left: old.filter((one) => !nowKeys.has(key(one))).map((one) => one.validatorId),
    roster: after.roster,
    policies: policiesOf(folded),
    operations: operationsOf(folded),
    proposals: proposalsOf(folded),
  };
}
