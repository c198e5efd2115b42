import { isAppError } from '#core/errors/errors.ts';
import type { RosterAttestation } from '#core/ledger/owner-attestation.ts';
import type { Database } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { type AttestDeps, attestFor, verifyReturned } from '../creation/attest.ts';
import type { RequestedAttestation } from '../creation/draft.ts';
import type { GivenAttestation } from './spec.ts';
import { lockManaged, type Managed, type OpenDraft, saveAttestations } from './store.ts';

export interface CollectDeps extends AttestDeps {
  readonly database: Database<RegisterSchema>;
}

/** Attestations that a draft still lacks. */
export function missingOf({ open, attestations }: Managed): readonly RequestedAttestation[] {
  const attested = new Set(attestations.map(({ subject }) => subject));
  return open?.draft.attestations.filter(({ data }) => !attested.has(data.subject)) ?? [];
}

/**
 * Verifies signatures given by a person against the requested attestations.
 * @throws AppError unauthenticated ATTESTATION_INVALID with the addresses; none of the signatures counts then
 */
function verifySigned(
  open: OpenDraft,
  given: readonly GivenAttestation[],
  deps: Pick<AttestDeps, 'verifier'>,
): RosterAttestation[] {
  const refused: string[] = [];
  const accepted: RosterAttestation[] = [];
  for (const { walletAddress, role, ...signed } of given) {
    const requested = open.draft.attestations.find(
      (each) => each.walletAddress === walletAddress && each.data.role === role,
    );
    const entry = requested && verifyReturned(requested, signed, deps.verifier);
    if (entry === undefined) refused.push(walletAddress);
    else accepted.push(entry);
  }
  if (refused.length > 0) throw refusal('ATTESTATION_INVALID', { details: { subjects: refused } });
  return accepted;
}

/** Attests with those wallets of the draft that the bearer of a token may sign with; the others are skipped. */
async function attestOwn(
  deps: AttestDeps,
  missing: readonly RequestedAttestation[],
  token: string,
): Promise<RosterAttestation[]> {
  const made: RosterAttestation[] = [];
  const own = new Set(
    missing.length === 0 ? [] : (await deps.wallets.subjectWallets(token)).map((key) => key.walletAddress),
  );
  const signable = missing.filter((each) => own.has(each.derivedFrom?.walletAddress ?? each.walletAddress));
  for (const requested of signable) {
    try {
      made.push(await attestFor(deps, requested, token));
    } catch (error) {
      if (!isAppError(error, 'forbidden') && !isAppError(error, 'not_found')) throw error;
    }
  }
  return made;
}

/**
 * Adds attestations to a draft, unless another draft has replaced it.
 * @returns the resource afterwards
 */
async function addAttestations(
  deps: Pick<CollectDeps, 'database'>,
  managed: Managed,
  added: readonly RosterAttestation[],
): Promise<Managed> {
  if (added.length === 0) return managed;
  return deps.database.transact(async (tx) => {
    const now = await lockManaged(tx, managed.uid);
    if (!isSameDraft(now, managed)) return now;
    const subjects = new Set(added.map(({ subject }) => subject));
    const attestations = [...now.attestations.filter(({ subject }) => !subjects.has(subject)), ...added];
    await saveAttestations(tx, managed.uid, attestations);
    return { ...now, attestations };
  });
}

/** Whether two states of a resource have the same draft. */
export function isSameDraft(left: Managed, right: Managed): boolean {
  const grantedAt = ({ open }: Managed) => open?.draft.attestations[0]?.data.grantedAt;
  return left.open !== undefined && grantedAt(left) === grantedAt(right);
}

/** Adds the given attestations and, if requested, those that the bearer of a token can sign. */
export async function collect(
  deps: CollectDeps,
  managed: Managed,
  from: { readonly given: readonly GivenAttestation[]; readonly token: string | undefined },
): Promise<Managed> {
  const { open } = managed;
  if (open === undefined) return managed;
  const given = verifySigned(open, from.given, deps);
  const attested = await addAttestations(deps, managed, given);
  if (from.token === undefined) return attested;
  return addAttestations(deps, attested, await attestOwn(deps, missingOf(attested), from.token));
}
