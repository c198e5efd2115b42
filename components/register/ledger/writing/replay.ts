import type { Verifier } from '#core/crypto/verify.ts';
import type { Violation } from '#core/errors/errors.ts';
import { type Certificate, verifyCertificate } from '#core/ledger/certificate.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { thresholdAt } from '../../governance/rules/store.ts';
import { membersAt } from '../../registers/state/store.ts';
import { recordConflict } from '../conflicts/store.ts';
import type { DocketBundle } from '../dockets/docket.ts';
import { findDocket, type StoredDocket } from '../dockets/store.ts';
import { memberOf } from './chain.ts';
import type { ChainState } from './verify.ts';

/** `conflict`: a quorum certified a docket other than the stored one, which halts the register. */
type Repeated =
  | { readonly kind: 'replayed' | 'divergent' | 'conflict' }
  | { readonly kind: 'invalid'; readonly violations: readonly Violation[] };

interface RepeatDeps {
  readonly database: Database<RegisterSchema>;
  readonly verifier: Verifier;
  readonly clock: Clock;
}

/** Whether a certificate decides the stored docket. */
function decidesStored(certificate: Certificate, stored: StoredDocket): boolean {
  return (
    certificate.docketHash === stored.hash &&
    certificate.merkleRoot === stored.merkle_root &&
    certificate.logRoot === stored.log_root &&
    certificate.validatorSetHash === stored.validator_set_hash
  );
}

function isStored({ header }: DocketBundle, stored: StoredDocket): boolean {
  return (
    stored.hash === header.hash &&
    stored.merkle_root === header.merkleRoot &&
    stored.log_root === header.logRoot &&
    stored.validator_set_hash === header.validatorSetHash
  );
}

/**
 * Judges a docket whose number is stored already: the same docket with any valid certificate is a replay. A valid
 * certificate for another docket proves a violation of safety: the proof is stored, and the register halts.
 */
export async function judgeRepeated(
  deps: RepeatDeps,
  bundle: DocketBundle,
  state: ChainState,
): Promise<Repeated> {
  const { header, certificate } = bundle;
  const { registerNo, registerId, networkId } = state;
  const { read } = deps.database;
  const stored = await findDocket(read, registerNo, { docketNumber: header.docketNumber });
  if (stored === undefined) return { kind: 'divergent' };
  const same = isStored(bundle, stored);
  if (!same && decidesStored(certificate, stored)) return { kind: 'divergent' };
  const members = await membersAt(read, registerNo, header.docketNumber);
  const context = {
    members: members.map(memberOf),
    networkId,
    registerId,
    signatureThresholdMin: await thresholdAt(read, registerNo, header.docketNumber),
    verifier: deps.verifier,
  };
  if (same) {
    const violations = verifyCertificate(certificate, { ...context, docket: header });
    return violations.length === 0 ? { kind: 'replayed' } : { kind: 'invalid', violations };
  }
  const proves =
    certificate.height === header.docketNumber && verifyCertificate(certificate, context).length === 0;
  if (!proves) return { kind: 'divergent' };
  const seenAt = new Date(deps.clock.nowMs());
  const text = JSON.stringify(certificate);
  const halted = await deps.database.transact((tx) =>
    recordConflict(tx, { registerNo, registerId, header, certificate: text, seenAt }),
  );
  return { kind: halted ? 'conflict' : 'divergent' };
}
