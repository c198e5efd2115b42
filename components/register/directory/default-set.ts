import { isAlgorithm } from '#core/crypto/algorithm.ts';
import type { Verifier } from '#core/crypto/verify.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { AppError } from '#core/errors/errors.ts';
import type { ValidatorMember } from '#core/ledger/consensus.ts';
import { verifyPossession } from '#core/ledger/possession.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { Validators } from '../clients.ts';
import type { RegisterSchema } from '../database/schema.ts';
import { type Announcement, announcedSince } from './store.ts';

export interface Possessed extends ValidatorMember {
  /** base64: proof that the validator holds the key, for this register */
  readonly proofOfPossession: string;
}

/** The members of a new register, each with the proof that it holds its key. */
export type DefaultSet = (registerId: string) => Promise<Possessed[]>;

export interface DefaultSetDeps {
  readonly database: Database<RegisterSchema>;
  readonly validators: Validators;
  readonly verifier: Verifier;
  readonly clock: Clock;
  readonly freshMs: number;
}

function unavailable(message: string, cause?: unknown): AppError {
  return new AppError('bad_gateway', 'VALIDATOR_UNAVAILABLE', message, { cause });
}

async function prove(deps: DefaultSetDeps, registerId: string, announced: Announcement): Promise<Possessed> {
  const { validatorId, publicKey, algorithm } = announced;
  const proof = await deps.validators.provePossession(announced, registerId).catch((error: unknown) => {
    throw unavailable(`Validator ${validatorId} did not prove its key.`, error);
  });
  const facts = { registerId, validatorId, publicKey };
  const proves =
    isAlgorithm(algorithm) &&
    proof.validatorId === validatorId &&
    proof.publicKey === publicKey &&
    verifyPossession(deps.verifier, { ...facts, algorithm }, proof.signature);
  if (!proves) throw unavailable(`The proof of validator ${validatorId} does not verify.`);
  return { validatorId, publicKey, algorithm, proofOfPossession: encodeBase64(proof.signature) };
}

/** All validators that announced themselves lately (D21); one that does not prove its key refuses the register. */
export function createDefaultSet(deps: DefaultSetDeps): DefaultSet {
  return async (registerId) => {
    const announced = await announcedSince(deps.database.read, new Date(deps.clock.nowMs() - deps.freshMs));
    if (announced.length === 0) throw unavailable('No validator has announced itself.');
    return Promise.all(announced.map((one) => prove(deps, registerId, one)));
  };
}
