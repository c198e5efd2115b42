import type { z } from 'zod';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { quorum } from '#core/ledger/consensus.ts';
import { findMemberAddress, memberDid } from '#core/ledger/did.ts';
import { activeMembers, type LedgerRules } from '#core/ledger/governance/rules.ts';
import { parsePolicy } from '#core/ledger/policy.ts';
import { findRegisterId } from '#core/ledger/register-id.ts';
import type { ReadonlyDeep } from '#kit/http/http.ts';
import type { EvidenceView, Validators, ValidatorView } from '../../clients/validators.ts';
import type { Wallets } from '../../clients/wallets.ts';
import { refusal } from '../../errors.ts';
import { type OperationalDeps, viewsOf } from '../../governance/liveness/operational.ts';
import { presentOperational } from '../../governance/liveness/present.ts';
import { presentProposal, presentTime, readProposal } from '../../governance/proposals/present.ts';
import { listProposals } from '../../governance/proposals/store.ts';
import { loadRules, type RulesDeps } from '../../governance/rules/load.ts';
import { presentAttestation } from '../creation/draft.ts';
import type { Subject } from '../state/access.ts';
import { type AnyRegister, type Deletion, findRegisterEver, type Register } from '../state/store.ts';
import { missingOf } from './attestations.ts';
import { listOutstanding, type OutstandingDeps } from './outstanding.ts';
import type { LiveState, Phase, PresentedDeletion, statusSchema } from './schemas.ts';
import { findManaged, findManager, genesisHash, type Managed } from './store.ts';

export interface StatusDeps extends RulesDeps, OutstandingDeps, OperationalDeps {
  readonly wallets: Pick<Wallets, 'subjectWallets'>;
  readonly validators: Validators;
}

/** The target of a key: a custom resource, a register, or both. */
export interface Found {
  readonly managed: Managed | undefined;
  readonly known: AnyRegister | undefined;
}

/** Maximum open proposals in a status; the newest are listed. */
const mostProposals = 100;
/** A register that lacks dockets and received none for this long is stale. */
const staleMs = 10_000;

/**
 * The resource or register of a key: a UID, or a register id.
 * @throws AppError not_found REGISTER_NOT_FOUND
 */
export async function getFound(deps: Pick<StatusDeps, 'database'>, key: string): Promise<Found> {
  const { read } = deps.database;
  const registerId = findRegisterId(key);
  const managed =
    registerId === undefined
      ? await findManaged(read, key.toLowerCase())
      : await findManager(read, registerId);
  const id = registerId ?? (managed?.releasedAt === undefined ? managed?.registerId : undefined);
  const known = id === undefined ? undefined : await findRegisterEver(read, id);
  if (known === undefined && (managed === undefined || managed.releasedAt !== undefined))
    throw refusal('REGISTER_NOT_FOUND');
  return { managed, known };
}

const phases: Readonly<Record<Register['status'], Phase>> = {
  Checking: 'Checking',
  Online: 'Online',
  Recovery: 'Recovering',
  Offline: 'Checking',
  Halted: 'Halted',
  Deleted: 'Deleted',
};

function phaseOf({ managed, known }: Found): Phase {
  if (known === undefined) {
    const waitsForOwner =
      managed !== undefined && missingOf(managed).some(({ data }) => data.role === 'Owner');
    return waitsForOwner ? 'AwaitingAttestations' : 'Pending';
  }
  const { register, deletion } = known;
  if (deletion !== undefined)
    return deletion.policy === 'Purge' && deletion.purgedAt === undefined ? 'Deleting' : 'Deleted';
  if (register.status === 'Checking' && register.height === 0) return 'GenesisSubmitted';
  return phases[register.status];
}

function instant(at: Date | undefined): string | null {
  return at === undefined ? null : apiTimestamp(at.getTime());
}

export function presentDeletion(deletion: Deletion | undefined): PresentedDeletion | null {
  if (deletion === undefined) return null;
  const { policy, deletedAt, purgeAfter, purgedAt } = deletion;
  return {
    policy,
    deletedAt: apiTimestamp(deletedAt.getTime()),
    purgeAfter: instant(purgeAfter),
    purgedAt: instant(purgedAt),
  };
}

/** Facts of the ledger, or of the draft before the register begins. */
function factsOf({ managed, known }: Found) {
  const draft = managed?.open?.draft;
  const register = known?.register;
  return {
    title: register?.title ?? draft?.title ?? null,
    description: register?.description ?? draft?.description ?? null,
    purpose: register?.purpose ?? managed?.purpose ?? 'General',
    devMode: register?.devMode ?? draft?.devMode ?? null,
    metadata: register?.metadata ?? draft?.metadata ?? {},
    createdAt: instant(register?.createdAt),
    genesisTransactionId: register?.genesisTransactionId ?? null,
    height: register?.height ?? 0,
    headHash: register?.headHash || null,
    lastSealedTime: register?.headTimestamp ? presentTime(register.headTimestamp) : null,
    policyVersion: register?.policyVersion ?? null,
    policy: register === undefined ? null : parsePolicy(JSON.parse(register.policyText)),
  };
}

function pendingAttestations(managed: Managed | undefined) {
  if (managed?.open === undefined) return [];
  const expiresAt = instant(managed.open.expiresAt);
  return missingOf(managed).map((requested) => {
    const { walletAddress, role, dataToSign } = presentAttestation(requested);
    return { walletAddress, role, dataToSign, expiresAt };
  });
}

function presentValidators(rules: LedgerRules, views: readonly ValidatorView[], nowMs: number) {
  const alive = new Map(
    presentOperational(rules, views, nowMs).validators.map((each) => [each.validatorId, each]),
  );
  const size = activeMembers(rules).length;
  const needed = quorum(size, rules.policy.consensus.signatureThresholdMin);
  const members = rules.validators.map(({ validatorId, status, publicKey }) => {
    const seen = alive.get(validatorId);
    return {
      validatorId,
      status,
      publicKey,
      operational: seen?.status === 'active',
      lastHeartbeat: seen?.lastHeartbeat ?? null,
    };
  });
  return {
    members,
    size,
    quorum: needed,
    faultTolerance: size - needed,
    operational: members.filter(({ operational }) => operational).length,
    reachable: views.length,
  };
}

/** Why the register service accepts no dockets (conflicts/); an operator resumes the register. */
const conflictReason = 'two certificates for one height were seen';

/** Aggregates the states of the validators that answer: one that is halted outweighs all others. */
function validationOf(register: Register, views: readonly ValidatorView[]) {
  const reported = views.flatMap(({ register }) => register ?? []);
  const order = ['Halted', 'Running', 'WaitingForValidators', 'Paused', 'Stopped'];
  const validation = order.find((status) => reported.some((each) => each.status === status)) ?? null;
  const halted = reported.find(({ status }) => status === 'Halted');
  const own = register.status === 'Halted' ? conflictReason : null;
  return { validation, haltedReason: own ?? halted?.reason ?? null };
}

function equivocationOf(views: readonly ValidatorView[]) {
  const first = new Map<string, EvidenceView>();
  for (const each of views.flatMap(({ register }) => register?.evidence ?? [])) {
    const name = `${each.kind} ${each.height} ${each.validatorIds.join()}`;
    const known = first.get(name);
    if (known === undefined || each.seenAtMs < known.seenAtMs) first.set(name, each);
  }
  return [...first.values()].map(({ kind, validatorIds, height, seenAtMs }) => {
    return { kind, validatorIds: [...validatorIds], height, seenAt: apiTimestamp(seenAtMs) };
  });
}

/** How many decided dockets the register service lacks. */
function syncOf(register: Register, views: readonly ValidatorView[], nowMs: number) {
  const targetDocket = Math.max(register.height, ...views.map((view) => view.height));
  const isSynced = register.height >= targetDocket;
  const progressPercent = isSynced ? 100 : Math.floor((100 * register.height) / targetDocket);
  const quietMs = nowMs - register.updatedAt.getTime();
  return {
    status: isSynced ? ('Synced' as const) : ('Syncing' as const),
    currentDocket: register.height,
    targetDocket,
    progressPercent,
    isStale: !isSynced && quietMs > staleMs,
  };
}

async function proposalsOf(
  deps: StatusDeps,
  register: Register,
  rules: LedgerRules,
  own: ReadonlySet<string>,
) {
  const nowMs = deps.clock.nowMs();
  const window = { offset: 0, limit: mostProposals };
  const { items } = await listProposals(deps.database.read, register.registerNo, undefined, window);
  return items.flatMap((row) => {
    const shown = presentProposal(row, rules, nowMs);
    if (shown.status !== 'Pending' && shown.status !== 'Approved') return [];
    const { proposalId, operationType, status, target, proposerDid, votesReceived, votesRequired } = shown;
    const votedByOperator = readProposal(row).votes.some(({ did }) => own.has(did));
    const facts = { proposalId, operationType, status, target: target ?? null, proposerDid };
    const { expiresAt, operation } = shown;
    return { ...facts, votesReceived, votesRequired, votedByOperator, expiresAt, operation };
  });
}

/** Live state of a register, from the ledger and its validators. */
async function liveOf(
  deps: StatusDeps,
  subject: Subject,
  register: Register,
): Promise<ReadonlyDeep<LiveState>> {
  const nowMs = deps.clock.nowMs();
  const rules = await loadRules(deps, register);
  const [views, outstanding, own, genesis] = await Promise.all([
    viewsOf(deps, register),
    listOutstanding(deps, register),
    deps.wallets.subjectWallets(subject.token),
    genesisHash(deps.database.read, register.registerNo),
  ]);
  const dids = new Set(own.map(({ walletAddress }) => memberDid(walletAddress)));
  const pending = views.flatMap((view) => view.register?.pending ?? []);
  return {
    genesisHash: genesis ?? null,
    cryptoPolicyVersion: rules.cryptoPolicy.version,
    roster: rules.roster.map(({ subject: did, role }) => {
      return { did, walletAddress: findMemberAddress(did) ?? null, role };
    }),
    operatorRole: rules.roster.find((entry) => dids.has(entry.subject))?.role ?? null,
    pendingProposals: await proposalsOf(deps, register, rules, dids),
    outstanding: outstanding.map(({ change, txId, submittedAt }) => {
      return { change, txId, submittedAt: instant(submittedAt) };
    }),
    validators: presentValidators(rules, views, nowMs),
    ...validationOf(register, views),
    equivocation: equivocationOf(views),
    sync: syncOf(register, views, nowMs),
    mempool: { pending: Math.max(0, ...pending) },
  };
}

/** The same for a register that has not begun or is deleted. */
const nothingLive: LiveState = {
  genesisHash: null,
  cryptoPolicyVersion: null,
  roster: [],
  operatorRole: null,
  pendingProposals: [],
  outstanding: [],
  validators: { members: [], size: 0, quorum: 0, faultTolerance: 0, operational: 0, reachable: 0 },
  validation: null,
  haltedReason: null,
  equivocation: [],
  sync: { status: 'Synced', currentDocket: 0, targetDocket: 0, progressPercent: 100, isStale: false },
  mempool: { pending: 0 },
};

/** The complete status that the operator shows, in one answer. */
export async function readStatus(
  deps: StatusDeps,
  subject: Subject,
  found: Found,
): Promise<ReadonlyDeep<z.output<typeof statusSchema>>> {
  const { managed, known } = found;
  const isLive = known !== undefined && known.deletion === undefined;
  return {
    uid: managed?.uid ?? null,
    registerId: known?.register.registerId ?? managed?.registerId ?? '',
    phase: phaseOf(found),
    organizationId: known?.register.organizationId ?? managed?.organizationId ?? null,
    ...factsOf(found),
    pendingAttestations: pendingAttestations(managed),
    ...(isLive ? await liveOf(deps, subject, known.register) : nothingLive),
    replicatedElsewhere: false,
    deletion: presentDeletion(known?.deletion),
  };
}
