import { isAlgorithm } from '#core/crypto/algorithm.ts';
import type { Verifier } from '#core/crypto/verify.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { type AppError, isAppError } from '#core/errors/errors.ts';
import { quorum, type ValidatorMember } from '#core/ledger/consensus.ts';
import { verifyPossession } from '#core/ledger/possession.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { Logger } from '#kit/log/log.ts';
import { isOutage, type Validators } from '../../clients/validators.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { type Announcement, announcedAmong, announcedSince } from './store.ts';

export interface Possessed extends ValidatorMember {
  /** base64: proof of possession of the key, for this register */
  readonly proofOfPossession: string;
}

/** The members of a new register, each with its proof of possession. */
export type DefaultSet = (registerId: string) => Promise<Possessed[]>;

interface DefaultSetDeps {
  readonly database: Database<RegisterSchema>;
  readonly validators: Pick<Validators, 'provePossession'>;
  readonly verifier: Verifier;
  readonly clock: Clock;
  readonly log: Logger;
  readonly freshMs: number;
}

function unavailable(message: string, cause?: unknown): AppError {
  return refusal('VALIDATOR_UNAVAILABLE', { kind: 'bad_gateway', message, cause });
}

/** Undefined when the validator cannot be reached. */
async function prove(
  deps: Pick<DefaultSetDeps, 'validators' | 'verifier'>,
  registerId: string,
  announced: Announcement,
): Promise<Possessed | undefined> {
  const { validatorId } = announced;
  const proof = await deps.validators.provePossession(announced, registerId).catch((error: unknown) => {
    if (isAppError(error) && isOutage(error)) return undefined;
    throw unavailable(`Validator ${validatorId} did not prove its key.`, error);
  });
  if (proof === undefined) return undefined;
  // A validator announces its first key; after a rotation a new register begins with a later one.
  const { publicKey, algorithm } = proof;
  const facts = { registerId, validatorId, publicKey };
  const proves =
    isAlgorithm(algorithm) &&
    algorithm === announced.algorithm &&
    proof.validatorId === validatorId &&
    verifyPossession(deps.verifier, { ...facts, algorithm }, proof.signature);
  if (!proves) throw unavailable(`The proof of validator ${validatorId} does not verify.`);
  return { validatorId, publicKey, algorithm, proofOfPossession: encodeBase64(proof.signature) };
}

/**
 * All validators that announced themselves recently. An unreachable one is left out as long as the rest is a quorum of
 * all, so that a single dead validator does not block new registers. One that answers without a valid proof fails the
 * creation.
 */
export function createDefaultSet(deps: DefaultSetDeps): DefaultSet {
  return async (registerId) => {
    const announced = await announcedSince(deps.database.read, new Date(deps.clock.nowMs() - deps.freshMs));
    if (announced.length === 0) throw unavailable('No validator has announced itself.');
    const proofs = await Promise.all(announced.map((one) => prove(deps, registerId, one)));
    const members = proofs.filter((member) => member !== undefined);
    const absent = announced
      .filter((_, index) => proofs[index] === undefined)
      .map(({ validatorId }) => validatorId);
    if (members.length < quorum(announced.length, 1)) {
      throw unavailable(`Too few validators can be reached: ${absent.join(', ')} did not answer.`);
    }
    if (absent.length > 0)
      deps.log.warn({ registerId, absent }, 'a new register is created without unreachable validators');
    return members;
  };
}

/** Exactly the named validators, each with its proof of possession. */
export type NamedSet = (registerId: string, validatorIds: readonly string[]) => Promise<Possessed[]>;

/**
 * Resolves a validator set given by name. All of its members must have announced themselves and prove their keys now: a
 * register without one of them would be a different register.
 * @throws AppError bad_gateway VALIDATOR_SET_UNAVAILABLE with the absent ones, VALIDATOR_UNAVAILABLE for a wrong proof
 */
export function createNamedSet(deps: Omit<DefaultSetDeps, 'freshMs'>): NamedSet {
  return async (registerId, validatorIds) => {
    const announced = await announcedAmong(deps.database.read, validatorIds);
    const proofs = await Promise.all(announced.map((one) => prove(deps, registerId, one)));
    const members = proofs.filter((member) => member !== undefined);
    const present = new Set(members.map(({ validatorId }) => validatorId));
    const absent = validatorIds.filter((validatorId) => !present.has(validatorId));
    if (absent.length > 0) throw refusal('VALIDATOR_SET_UNAVAILABLE', { details: { absent } });
    return members;
  };
}
