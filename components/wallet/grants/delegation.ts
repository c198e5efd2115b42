import { isGrantableContext } from '../custody/contexts.ts';
import type { AccessRight } from '../database/schema.ts';

/** The facts of a grant that the rules read; times in milliseconds since the epoch. */
export interface GrantFacts {
  readonly accessRight: AccessRight;
  readonly expiresAtMs: number | undefined;
  readonly ended: boolean;
  readonly allowedContexts: readonly string[];
}

export interface DelegatedUse {
  /** `sign`, or `read`: decrypt and unwrap */
  readonly purpose: 'sign' | 'read';
  /** organisation that owns the wallet; absent when a person does */
  readonly owningOrganizationId: string | undefined;
  readonly callerOrganizationId: string | undefined;
  readonly callerIsAdministrator: boolean;
  readonly grant: GrantFacts | undefined;
  /** name of the context the derivation path resolved to; absent for the default key and raw paths */
  readonly context: string | undefined;
  readonly hybridMode: boolean;
  readonly nowMs: number;
}

type DelegationRefusal =
  | 'GRANT_MISSING'
  | 'GRANT_INSUFFICIENT'
  | 'ORGANIZATION_MISMATCH'
  | 'ADMINISTRATOR_REQUIRED'
  | 'CONTEXT_NOT_GRANTED'
  | 'HYBRID_MODE_REFUSED';

/**
 * Judges the use of a wallet's keys by a caller who does not own it. All conditions must hold at the time of use
 * (specification document 3, section 4): an active ReadWrite grant; for a wallet of an organisation, the caller's token
 * belongs to that organisation and, for signing, carries Administrator; the path resolves to a context that the grant
 * names; no hybrid mode. `undefined` allows; otherwise the first condition that failed.
 */
export function judgeDelegatedUse(use: DelegatedUse): DelegationRefusal | undefined {
  const { grant } = use;
  if (use.hybridMode) return 'HYBRID_MODE_REFUSED';
  if (grant === undefined || !isActiveGrant(grant, use.nowMs)) return 'GRANT_MISSING';
  if (!includesRight(grant.accessRight, 'ReadWrite')) return 'GRANT_INSUFFICIENT';
  if (use.owningOrganizationId !== undefined) {
    if (use.callerOrganizationId !== use.owningOrganizationId) return 'ORGANIZATION_MISMATCH';
    if (use.purpose === 'sign' && !use.callerIsAdministrator) return 'ADMINISTRATOR_REQUIRED';
  }
  const granted = use.context !== undefined && openContexts(grant).includes(use.context);
  return granted ? undefined : 'CONTEXT_NOT_GRANTED';
}

/**
 * The contexts that a grant gives access to. A grant of an earlier release may name contexts that can no longer be
 * granted: its row stays as the record, and those names give no access.
 */
export function openContexts(grant: Pick<GrantFacts, 'allowedContexts'>): readonly string[] {
  return grant.allowedContexts.filter(isGrantableContext);
}

/** A grant ends by revocation or at the instant it expires. */
export function isActiveGrant(grant: GrantFacts, nowMs: number): boolean {
  return !grant.ended && (grant.expiresAtMs === undefined || nowMs < grant.expiresAtMs);
}

const rankOf = { ReadOnly: 1, ReadWrite: 2, Owner: 3 } as const satisfies Record<AccessRight, number>;

export function includesRight(granted: AccessRight, required: AccessRight): boolean {
  return rankOf[granted] >= rankOf[required];
}

interface GrantProposal {
  readonly ownedByOrganization: boolean;
  readonly accessRight: AccessRight;
  readonly allowedContexts: readonly string[];
}

/** Judges a grant that an Administrator makes for the organisation; `undefined` allows. */
export function judgeGrant(proposal: GrantProposal): 'OWNER_NOT_GRANTABLE' | 'SCOPE_REQUIRED' | undefined {
  if (!proposal.ownedByOrganization) return undefined;
  if (proposal.accessRight === 'Owner') return 'OWNER_NOT_GRANTABLE';
  return proposal.allowedContexts.length === 0 ? 'SCOPE_REQUIRED' : undefined;
}
