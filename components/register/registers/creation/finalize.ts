import { equalSecrets, sha256 } from '#core/crypto/hash.ts';
import { findRegisterId } from '#core/ledger/register-id.ts';
import { refusal } from '../../errors.ts';
import type { DefaultSet } from '../directory/default-set.ts';
import type { Subject } from '../state/access.ts';
import { type AttestDeps, attestAll, judgeAttestations, type ReturnedAttestation } from './attest.ts';
import { type BeginDeps, beginRegister } from './begin.ts';
import type { Begun } from './schemas.ts';
import { closeRegistration, countWrongNonce, findRegistration, type Registration } from './store.ts';

interface FinalizeRequest {
  readonly registerId: string;
  readonly nonce: string;
  readonly signedAttestations: readonly ReturnedAttestation[];
  readonly autoAttest: boolean;
}

export interface FinalizeDeps extends AttestDeps, BeginDeps {
  readonly wallets: AttestDeps['wallets'];
  readonly defaultSet: DefaultSet;
}

const maxWrongNonces = 5;

/** Finds the registration and checks nonce and expiry; a finalised one with the right nonce is a replay. */
async function openOf(deps: FinalizeDeps, request: FinalizeRequest, subject: Subject): Promise<Registration> {
  const registerId = findRegisterId(request.registerId);
  const registration =
    registerId === undefined ? undefined : await findRegistration(deps.database.read, registerId);
  if (registration === undefined || registration.organizationId !== subject.caller.organizationId) {
    throw refusal('REGISTRATION_NOT_FOUND');
  }
  const nonceFits = equalSecrets(sha256(request.nonce), registration.nonceHash);
  if (registration.answer !== undefined) {
    if (nonceFits) return registration;
    throw refusal('REGISTRATION_FINALIZED');
  }
  const spent = registration.wrongNonces >= maxWrongNonces;
  if (spent || deps.clock.nowMs() >= registration.expiresAt.getTime()) throw refusal('REGISTRATION_EXPIRED');
  if (!nonceFits) {
    await deps.database.transact((tx) => countWrongNonce(tx, registration.registerId));
    throw refusal('ATTESTATION_INVALID', { message: 'The nonce does not match the registration.' });
  }
  return registration;
}

/**
 * Second phase of the creation: verifies the attestations, requests proofs of possession from the default validators,
 * and writes register, control projection and genesis work in one commit. The answer does not wait for docket 0.
 */
export async function finalize(
  deps: FinalizeDeps,
  subject: Subject,
  request: FinalizeRequest,
): Promise<Begun> {
  const registration = await openOf(deps, request, subject);
  if (registration.answer !== undefined) return registration.answer;
  const { draft, organizationId } = registration;
  if (organizationId === undefined) throw refusal('REGISTRATION_NOT_FOUND');
  const automatic = request.autoAttest && request.signedAttestations.length === 0;
  const roster = automatic
    ? await attestAll(deps, draft.attestations, subject.token)
    : judgeAttestations(draft.attestations, request.signedAttestations, deps.verifier);
  const validators = await deps.defaultSet(draft.registerId);
  const beginning = { draft, organizationId, roster, validators };
  const answer = await beginRegister(deps, beginning, (tx, begun) =>
    closeRegistration(tx, draft.registerId, begun),
  );
  // A concurrent call finalised it: its answer is returned.
  return answer ?? finalize(deps, subject, request);
}
