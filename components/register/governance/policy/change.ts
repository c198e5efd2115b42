import type { z } from 'zod';
import { isJsonObject, type JsonObject } from '#core/encoding/json.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { type CryptoPolicy, cryptoPolicySchema } from '#core/ledger/control-record.ts';
import { governanceDraft } from '#core/ledger/governance/build.ts';
import {
  type Approval,
  GOVERNANCE_PAYLOAD_VERSION,
  type Operation,
  type TRANSITION_MODES,
} from '#core/ledger/governance/operation.ts';
import type { LedgerRules } from '#core/ledger/governance/rules.ts';
import { parsePolicy, type RegisterPolicy } from '#core/ledger/policy.ts';
import { refusal } from '../../errors.ts';
import type { Subject } from '../../registers/state/access.ts';
import type { Register } from '../../registers/state/store.ts';
import { assertAccepted, refusedWith } from '../control/answer.ts';
import { type RosterSigner, resolveSigner } from '../control/roster-authorisation.ts';
import { submitControl } from '../control/submit.ts';
import { type DecideDeps, decide, presentVotes } from '../proposals/decide.ts';
import { loadRules, type RulesDeps } from '../rules/load.ts';
import type { submittedModeSchema, submittedPolicySchema } from './schemas.ts';

export interface ChangeDeps extends DecideDeps, RulesDeps {}

interface Change {
  readonly register: Register;
  readonly subject: Subject;
}

interface PolicyPatch {
  readonly policy: Readonly<Record<string, unknown>>;
  readonly updatedBy: string;
  readonly transitionMode?: (typeof TRANSITION_MODES)[number] | undefined;
  readonly justification?: string | undefined;
  readonly proposedAt?: string | undefined;
  readonly approvals?: readonly Approval[] | undefined;
}

interface CryptoPolicyPatch {
  readonly cryptoPolicy: Readonly<Record<string, unknown>>;
  readonly updatedBy?: string | undefined;
  readonly justification?: string | undefined;
  readonly proposedAt?: string | undefined;
  readonly approvals?: readonly Approval[] | undefined;
}

type SubmittedPolicy = z.output<typeof submittedPolicySchema>;

/** JSON merge patch (RFC 7396): members that the patch omits stay, null removes a member. */
function mergePatch(current: unknown, patch: JsonObject): JsonObject {
  const merged = new Map(isJsonObject(current) ? Object.entries(current) : []);
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) merged.delete(name);
    else merged.set(name, isJsonObject(value) ? mergePatch(merged.get(name), value) : value);
  }
  return Object.fromEntries(merged);
}

/** The version of the new policy: the next one, which a request may name explicitly. */
function nextVersion(requested: unknown, current: number): number {
  if (requested !== undefined && requested !== current + 1) {
    throw refusal('POLICY_VERSION_CONFLICT', { details: { currentVersion: current } });
  }
  return current + 1;
}

/** The complete policy for a patch of the current one; the docket stamps author and time. */
function patchedPolicy(current: RegisterPolicy, requested: JsonObject): JsonObject {
  const version = nextVersion(requested['version'], current.version);
  const { updatedAt: _at, updatedBy: _by, ...whole } = mergePatch(current, { ...requested, version });
  parsePolicy(whole);
  return whole;
}

function needsTransition(current: RegisterPolicy, requested: JsonObject): boolean {
  const to = parsePolicy(requested).validators.registrationMode;
  return current.validators.registrationMode === 'public' && to === 'consent';
}

/** Submits an operation on a policy; a version taken meanwhile is a conflict. */
async function submitOperation(
  deps: ChangeDeps,
  at: { readonly change: Change; readonly rules: LedgerRules; readonly member: RosterSigner },
  operation: Operation,
  newVersion: number,
): Promise<SubmittedPolicy> {
  const { register } = at.change;
  const proposer = at.member.signer;
  const decided = await decide(deps, { register, rules: at.rules, proposer }, operation, 'auto');
  const { txId, answer } = decided;
  if (refusedWith(answer) === 'VAL_POLICY_004') {
    throw refusal('POLICY_VERSION_CONFLICT', { details: { currentVersion: newVersion - 1 } });
  }
  assertAccepted(answer);
  return {
    txId,
    registerId: register.registerId,
    newVersion,
    status: 'submitted',
    ...presentVotes(decided),
  };
}

function commonOf(
  requested: Pick<PolicyPatch, 'justification' | 'proposedAt' | 'approvals'>,
  proposerDid: string,
  now: string,
) {
  const { justification, approvals, proposedAt = now } = requested;
  return {
    proposerDid,
    proposedAt,
    ...(justification !== undefined && { justification }),
    ...(approvals !== undefined && { approvalSignatures: [...approvals] }),
  };
}

/** Proposes the next version of the register policy; it takes effect from the docket after the one that seals it. */
export async function updatePolicy(
  deps: ChangeDeps,
  change: Change,
  requested: PolicyPatch,
): Promise<SubmittedPolicy> {
  const rules = await loadRules(deps, change.register);
  const member = await resolveSigner(deps.wallets, change.subject, rules, requested.updatedBy);
  const policy = patchedPolicy(rules.policy, requested.policy);
  const { transitionMode } = requested;
  if (transitionMode === undefined && needsTransition(rules.policy, policy))
    throw refusal('TRANSITION_MODE_REQUIRED');
  const now = formatLedgerTimestamp(deps.clock.nowMicros());
  const operation: Operation = {
    operationType: 'policy-update',
    ...commonOf(requested, member.entry.subject, now),
    policy,
    ...(transitionMode !== undefined && { transitionMode }),
  };
  return submitOperation(deps, { change, rules, member }, operation, rules.policy.version + 1);
}

function patchedCryptoPolicy(
  current: CryptoPolicy,
  requested: JsonObject,
  now: string,
): z.output<typeof cryptoPolicySchema> {
  const version = nextVersion(requested['version'], current.version);
  const merged = mergePatch(current, { effectiveFrom: now, ...requested, version });
  const parsed = cryptoPolicySchema.safeParse(merged);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const message = `cryptoPolicy.${issue?.path.join('.')}: ${issue?.message}`;
  throw refusal('INVALID_POLICY', { message });
}

/** Proposes the next version of the crypto policy. */
export async function updateCryptoPolicy(
  deps: ChangeDeps,
  change: Change,
  requested: CryptoPolicyPatch,
): Promise<SubmittedPolicy> {
  const rules = await loadRules(deps, change.register);
  const member = await resolveSigner(deps.wallets, change.subject, rules, requested.updatedBy);
  const now = formatLedgerTimestamp(deps.clock.nowMicros());
  const cryptoPolicy = patchedCryptoPolicy(rules.cryptoPolicy, requested.cryptoPolicy, now);
  const operation: Operation = {
    operationType: 'crypto-policy-update',
    ...commonOf(requested, member.entry.subject, now),
    cryptoPolicy,
  };
  return submitOperation(deps, { change, rules, member }, operation, cryptoPolicy.version);
}

/**
 * Turns development mode off, permanently: the one change of the crypto policy that the installation signs itself. A
 * refusal by the validators is answered with 422.
 */
export async function disableDevMode(
  deps: ChangeDeps,
  register: Register,
): Promise<z.output<typeof submittedModeSchema>> {
  const { cryptoPolicy } = await loadRules(deps, register);
  if (!cryptoPolicy.devMode) throw refusal('DEV_MODE_ALREADY_DISABLED');
  const version = cryptoPolicy.version + 1;
  const effectiveFrom = formatLedgerTimestamp(deps.clock.nowMicros());
  const payload = {
    version: GOVERNANCE_PAYLOAD_VERSION,
    registerId: register.registerId,
    cryptoPolicy: { ...cryptoPolicy, version, effectiveFrom, devMode: false },
  };
  const draft = governanceDraft('control.crypto.update', payload, { policyVersion: String(version) });
  const { txId, answer } = await submitControl(deps, register, draft, 'system');
  const isRefused = answer.status >= 400 && answer.status < 500 && answer.status !== 429;
  if (isRefused) throw refusal('POLICY_UPDATE_REJECTED', { details: { reason: refusedWith(answer) } });
  assertAccepted(answer);
  return {
    registerId: register.registerId,
    txId,
    policyVersion: version,
    status: 'submitted',
    message: 'Accepted for sealing. Development mode is off once the register shows devMode false.',
  };
}
