import { z } from 'zod';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { AppError } from '#core/errors/errors.ts';
import { memberDid } from '#core/ledger/did.ts';
import { governanceDraft } from '#core/ledger/governance/build.ts';
import { GOVERNANCE_PAYLOAD_VERSION, TRANSITION_MODES } from '#core/ledger/governance/operation.ts';
import type { LedgerRules } from '#core/ledger/governance/rules.ts';
import { ROSTER_ROLES } from '#core/ledger/owner-attestation.ts';
import type { Validators } from '../../clients/validators.ts';
import type { Wallets } from '../../clients/wallets.ts';
import { refusal } from '../../errors.ts';
import { assertAccepted } from '../../governance/control/answer.ts';
import { findRosterSigner, resolveSigner } from '../../governance/control/roster-authorisation.ts';
import { submitControl } from '../../governance/control/submit.ts';
import { assertStaysOperational } from '../../governance/liveness/operational.ts';
import { type ChangeDeps, disableDevMode, updatePolicy } from '../../governance/policy/change.ts';
import { decide } from '../../governance/proposals/decide.ts';
import { type OperationRequest, operationOf, word } from '../../governance/proposals/operation.ts';
import { vote } from '../../governance/proposals/vote.ts';
import { loadRules } from '../../governance/rules/load.ts';
import { addEntry, nextEntry } from '../../governance/validators/register.ts';
import type { Subject } from '../state/access.ts';
import type { Register } from '../state/store.ts';
import { assertReadable, knownDescription, knownMetadata, knownTitle, reasonText } from '../state/texts.ts';
import { listOutstanding } from './outstanding.ts';
import type { SubmittedManagedChange } from './schemas.ts';
import { address, validatorIdText } from './spec.ts';
import { saveChange } from './store.ts';

interface ManagedChangeDeps extends ChangeDeps {
  readonly wallets: Wallets;
  readonly validators: Validators;
}

const justification = reasonText.optional();

export const changeBody = z.discriminatedUnion('change', [
  z.strictObject({
    change: z.literal('metadata'),
    title: knownTitle.optional(),
    description: knownDescription.optional(),
    metadata: knownMetadata.optional().describe('Added to the existing entries.'),
  }),
  z.strictObject({
    change: z.literal('policy'),
    policy: z.record(z.string(), z.unknown()).describe('Members left out stay, null removes a member.'),
    transitionMode: word(TRANSITION_MODES).optional(),
    justification,
  }),
  z.strictObject({ change: z.literal('devModeOff') }),
  z.strictObject({ change: z.literal('addValidator'), validatorId: validatorIdText, justification }),
  z.strictObject({
    change: z.literal('removeValidator'),
    validatorId: validatorIdText,
    force: z
      .boolean()
      .default(false)
      .describe('Allows the change although fewer operational members than a quorum would remain.'),
    justification,
  }),
  z.strictObject({ change: z.literal('rotateValidatorKey'), validatorId: validatorIdText, justification }),
  z.strictObject({
    change: z.literal('addMember'),
    walletAddress: address,
    role: z.enum(ROSTER_ROLES),
    targetKey: z
      .strictObject({ publicKey: z.string().min(1).max(1024), algorithm: z.string().min(1).max(32) })
      .optional(),
    justification,
  }),
  z.strictObject({ change: z.literal('removeMember'), walletAddress: address, justification }),
  z.strictObject({
    change: z.literal('changeRole'),
    walletAddress: address,
    role: z.enum(ROSTER_ROLES),
    justification,
  }),
  z.strictObject({
    change: z.literal('vote'),
    proposalId: z.string().regex(/^[0-9a-f]{64}$/),
    decision: z.enum(['approve', 'reject']),
  }),
]);
type ManagedChange = z.output<typeof changeBody>;
type Of<C extends ManagedChange['change']> = Extract<ManagedChange, { readonly change: C }>;

interface At {
  readonly register: Register;
  readonly subject: Subject;
  readonly rules: LedgerRules;
}

/** What validators accepted. */
interface Accepted {
  readonly txId: string;
  readonly proposalId?: string | undefined;
  readonly votesReceived?: number;
  readonly votesRequired?: number;
}

/** The aggregate of a change; changes of one aggregate exclude each other. */
function aggregateOf(change: ManagedChange): string {
  switch (change.change) {
    case 'metadata':
    case 'policy':
    case 'devModeOff':
      return change.change;
    case 'addValidator':
    case 'removeValidator':
    case 'rotateValidatorKey':
      return 'validators';
    case 'vote':
      return `vote ${change.proposalId}`;
    default:
      return 'members';
  }
}

/** The installation signs these changes itself, so the caller must be a roster member who may decide them. */
async function assertGoverns(deps: ManagedChangeDeps, { subject, rules }: At): Promise<void> {
  const governs = await findRosterSigner(
    deps.wallets,
    subject,
    rules,
    ({ role }) => role === 'Owner' || role === 'Admin',
  );
  if (governs === undefined) throw refusal('NOT_ON_ROSTER');
}

async function changeMetadata(deps: ManagedChangeDeps, at: At, requested: Of<'metadata'>): Promise<Accepted> {
  const { register, rules } = at;
  const { title, description } = requested;
  if (title === undefined && description === undefined && requested.metadata === undefined)
    throw new AppError('invalid', 'INVALID_REQUEST', 'Give a title, a description or metadata.');
  await assertGoverns(deps, at);
  assertReadable(requested, rules);
  const metadata = requested.metadata && { ...rules.metadata, ...requested.metadata };
  const { registerId } = register;
  const payload = { version: GOVERNANCE_PAYLOAD_VERSION, registerId, title, description, metadata };
  const draft = governanceDraft('control.register.updatemetadata', payload);
  const { txId, answer } = await submitControl(deps, register, draft, 'system');
  assertAccepted(answer);
  return { txId };
}

/** The details of an operation on validators or on the roster. */
async function detailOf(
  deps: ManagedChangeDeps,
  { register, rules }: At,
  requested: Exclude<ManagedChange, { readonly change: 'metadata' | 'policy' | 'devModeOff' | 'vote' }>,
): Promise<OperationRequest> {
  const { registerId } = register;
  switch (requested.change) {
    case 'addValidator': {
      const validatorEntry = await addEntry(deps, registerId, requested.validatorId);
      return { operationType: 'add-validator', validatorEntry };
    }
    case 'rotateValidatorKey': {
      const validatorEntry = await nextEntry(deps, rules, requested.validatorId);
      return { operationType: 'rotate-validator-key', validatorEntry };
    }
    case 'removeValidator':
      return { operationType: 'remove-validator', validatorId: requested.validatorId };
    case 'addMember': {
      const { targetKey, role: targetRole } = requested;
      const targetDid = memberDid(requested.walletAddress);
      return { operationType: 'add-member', targetDid, targetRole, ...(targetKey && { targetKey }) };
    }
    case 'removeMember':
      return { operationType: 'remove-member', targetDid: memberDid(requested.walletAddress) };
    case 'changeRole': {
      const targetDid = memberDid(requested.walletAddress);
      return { operationType: 'change-role', targetDid, targetRole: requested.role };
    }
  }
}

async function operate(
  deps: ManagedChangeDeps,
  at: At,
  requested: Parameters<typeof detailOf>[2],
): Promise<Accepted> {
  const { register, subject, rules } = at;
  const { signer: proposer, entry } = await resolveSigner(deps.wallets, subject, rules);
  const now = formatLedgerTimestamp(deps.clock.nowMicros());
  const detail = { ...(await detailOf(deps, at, requested)), justification: requested.justification };
  const operation = await operationOf(detail, { proposerDid: entry.subject, now }, deps.wallets);
  const isForced = requested.change === 'removeValidator' && requested.force;
  await assertStaysOperational(deps, at, operation, isForced);
  const decided = await decide(deps, { register, rules, proposer }, operation, 'auto');
  const { txId, answer, proposalId, votesReceived, votesRequired } = decided;
  assertAccepted(answer);
  return { txId, proposalId, votesReceived, votesRequired };
}

async function changePolicy(deps: ManagedChangeDeps, at: At, requested: Of<'policy'>): Promise<Accepted> {
  const { register, subject, rules } = at;
  const { entry } = await resolveSigner(deps.wallets, subject, rules);
  const { policy, transitionMode, justification: reason } = requested;
  const change = { policy, updatedBy: entry.subject, transitionMode, justification: reason };
  return updatePolicy(deps, { register, subject }, change);
}

async function submit(deps: ManagedChangeDeps, at: At, requested: ManagedChange): Promise<Accepted> {
  switch (requested.change) {
    case 'metadata':
      return changeMetadata(deps, at, requested);
    case 'policy':
      return changePolicy(deps, at, requested);
    case 'devModeOff':
      await assertGoverns(deps, at);
      return disableDevMode(deps, at.register);
    case 'vote': {
      const { proposalId, decision } = requested;
      return vote(deps, { register: at.register, subject: at.subject, proposalId }, { decision });
    }
    default:
      return operate(deps, at, requested);
  }
}

/** The outcome of the submission, as the operator reads it. */
function presentSubmitted(
  registerId: string,
  { change }: ManagedChange,
  { txId, proposalId, votesReceived, votesRequired }: Accepted,
): SubmittedManagedChange {
  const isVoting = proposalId !== undefined && change !== 'vote';
  const votes = { votesReceived: votesReceived ?? null, votesRequired: votesRequired ?? null };
  const status = isVoting ? 'voting' : 'submitted';
  return { registerId, change, status, txId, proposalId: proposalId ?? null, ...votes };
}

function outstanding(change: string, txId?: string): AppError {
  const details = { change, ...(txId !== undefined && { txId }) };
  return refusal('CHANGE_OUTSTANDING', { details, retryAfterSeconds: 1 });
}

/** Submits a change of a register, signed as the roster member that the caller acts as. */
export type ChangeManaged = (
  at: Omit<At, 'rules'>,
  requested: ManagedChange,
) => Promise<SubmittedManagedChange>;

/**
 * At most one change of an aggregate is outstanding: a second one is refused until the first is sealed or refused.
 * Between concurrent submissions of two replicas the ledger decides.
 * @throws AppError conflict CHANGE_OUTSTANDING, and the errors of each kind of change; ForwardedRefusal of a validator
 */
export function createChangeManaged(deps: ManagedChangeDeps): ChangeManaged {
  const underWay = new Set<string>();

  async function change({ register, subject }: Omit<At, 'rules'>, requested: ManagedChange) {
    const aggregate = aggregateOf(requested);
    const before = (await listOutstanding(deps, register)).find((one) => one.aggregate === aggregate);
    if (before !== undefined) throw outstanding(before.change, before.txId);
    const rules = await loadRules(deps, register);
    const onSigned = (txId: string) => {
      const submittedAt = new Date(deps.clock.nowMs());
      const saved = { aggregate, change: requested.change, txId, submittedAt };
      return deps.database.transact((tx) => saveChange(tx, register.registerNo, saved));
    };
    const accepted = await submit({ ...deps, onSigned }, { register, subject, rules }, requested);
    return presentSubmitted(register.registerId, requested, accepted);
  }

  return async (at, requested) => {
    const name = `${at.register.registerNo} ${aggregateOf(requested)}`;
    if (underWay.has(name)) throw outstanding(requested.change);
    underWay.add(name);
    try {
      return await change(at, requested);
    } finally {
      underWay.delete(name);
    }
  };
}
