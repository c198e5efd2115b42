import type { z } from 'zod';
import { isAlgorithm } from '#core/crypto/algorithm.ts';
import { normalisePublicKey } from '#core/crypto/public-key.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { governanceDraft } from '#core/ledger/governance/build.ts';
import {
  GOVERNANCE_PAYLOAD_VERSION,
  type Operation,
  type ValidatorEntry,
} from '#core/ledger/governance/operation.ts';
import type { LedgerRules, LedgerValidator } from '#core/ledger/governance/rules.ts';
import type { Validators } from '../../clients/validators.ts';
import { refusal } from '../../errors.ts';
import { findAnnounced } from '../../registers/directory/store.ts';
import type { Subject } from '../../registers/state/access.ts';
import type { Register } from '../../registers/state/store.ts';
import { assertAccepted } from '../control/answer.ts';
import { resolveSigner } from '../control/roster-authorisation.ts';
import { submitControl } from '../control/submit.ts';
import { assertStaysOperational } from '../liveness/operational.ts';
import { type DecideDeps, decide, presentVotes } from '../proposals/decide.ts';
import { loadRules, type RulesDeps } from '../rules/load.ts';
import type { registrationSchema, submittedChangeSchema } from './schemas.ts';

export interface SetDeps extends DecideDeps, RulesDeps {
  readonly validators: Pick<Validators, 'submit' | 'provePossession' | 'view'>;
}

interface RegistrationRequest {
  readonly validatorId: string;
  readonly publicKey?: string | undefined;
  /** base64, over the facts of core/ledger/possession */
  readonly proofOfPossession?: string | undefined;
}

/**
 * The entry of a validator: with the given proof, or with one requested from its announced address.
 * @param after requests the proof for the key that follows this one
 */
async function entryOf(
  deps: SetDeps,
  registerId: string,
  requested: RegistrationRequest,
  after?: string,
): Promise<ValidatorEntry> {
  const { validatorId, publicKey, proofOfPossession } = requested;
  if (publicKey !== undefined && proofOfPossession !== undefined) {
    const algorithm = 'ED25519';
    return { validatorId, publicKey: normalisePublicKey(algorithm, publicKey), algorithm, proofOfPossession };
  }
  const announced = await findAnnounced(deps.database.read, validatorId);
  if (announced === undefined)
    throw refusal('VALIDATOR_NOT_FOUND', { message: 'The validator has not announced itself.' });
  const proof = await deps.validators.provePossession(announced, registerId, after);
  const { algorithm } = proof;
  const fits = publicKey === undefined || publicKey === proof.publicKey;
  if (!isAlgorithm(algorithm) || !fits)
    throw refusal('VALIDATOR_KEY_CHANGED', { message: 'The validator has another key.' });
  const signature = encodeBase64(proof.signature);
  return { validatorId, publicKey: proof.publicKey, algorithm, proofOfPossession: signature };
}

/** The entry of a validator to be admitted, with a proof that is requested from it. */
export function addEntry(deps: SetDeps, registerId: string, validatorId: string): Promise<ValidatorEntry> {
  return entryOf(deps, registerId, { validatorId });
}

/** The entry of a validator with the key that follows its current one. */
export async function nextEntry(
  deps: SetDeps,
  rules: LedgerRules,
  validatorId: string,
): Promise<ValidatorEntry> {
  const { publicKey } = getValidator(rules, validatorId);
  return entryOf(deps, rules.registerId, { validatorId }, publicKey);
}

/**
 * Registers a validator with its proof of possession: effective at once on a public register, else pending approval.
 */
export async function registerValidator(
  deps: SetDeps,
  register: Register,
  requested: RegistrationRequest,
): Promise<z.output<typeof registrationSchema>> {
  const rules = await loadRules(deps, register);
  const validatorEntry = await entryOf(deps, register.registerId, requested);
  const { registerId } = register;
  const payload = { version: GOVERNANCE_PAYLOAD_VERSION, registerId, validatorEntry };
  const draft = governanceDraft('control.validator.register', payload);
  const { txId, answer } = await submitControl(deps, register, draft, 'system');
  const isPublic = rules.policy.validators.registrationMode === 'public';
  assertAccepted(answer);
  return {
    txId,
    registerId,
    validatorId: requested.validatorId,
    status: isPublic ? 'active' : 'pending',
    message: 'The change takes effect when its docket is sealed.',
  };
}

export type SetAct = 'approve' | 'reject' | 'suspend' | 'rotate-key';

async function operationOf(
  deps: SetDeps,
  { act, register, key }: SetChange,
  validator: LedgerValidator,
  common: Pick<Operation, 'proposerDid' | 'proposedAt' | 'justification'>,
): Promise<Operation> {
  const { validatorId, publicKey, algorithm, proofOfPossession } = validator;
  switch (act) {
    case 'approve':
      return {
        operationType: 'add-validator',
        ...common,
        validatorEntry: { validatorId, publicKey, algorithm, proofOfPossession },
      };
    case 'reject':
      return { operationType: 'remove-validator', ...common, validatorId };
    case 'suspend':
      return { operationType: 'suspend-validator', ...common, validatorId };
    case 'rotate-key': {
      const requested = { validatorId, ...key };
      const validatorEntry = await entryOf(deps, register.registerId, requested, publicKey);
      return { operationType: 'rotate-validator-key', ...common, validatorEntry };
    }
  }
}

/** The validator with an id, in any status. */
export function getValidator(rules: LedgerRules, validatorId: string): LedgerValidator {
  const found = rules.validators.find((each) => each.validatorId === validatorId);
  if (found === undefined) throw refusal('VALIDATOR_NOT_FOUND');
  return found;
}

interface SetChange {
  readonly register: Register;
  readonly subject: Subject;
  readonly validatorId: string;
  readonly act: SetAct;
  /** A system administrator forces the change although too few operational members would remain. */
  readonly isForced: boolean;
  /** The key to rotate to; requested from the validator when absent. */
  readonly key?: Omit<RegistrationRequest, 'validatorId'> | undefined;
}

/** Approves, rejects or suspends a validator, or rotates its key, by a governance operation. */
export async function changeSet(
  deps: SetDeps,
  change: SetChange,
  by: { readonly did?: string | undefined; readonly reason?: string | undefined },
): Promise<z.output<typeof submittedChangeSchema>> {
  const { register, subject, validatorId } = change;
  const rules = await loadRules(deps, register);
  const validator = getValidator(rules, validatorId);
  const member = await resolveSigner(deps.wallets, subject, rules, by.did);
  const common = {
    proposerDid: member.entry.subject,
    proposedAt: formatLedgerTimestamp(deps.clock.nowMicros()),
    ...(by.reason !== undefined && { justification: by.reason }),
  };
  const proposer = member.signer;
  const operation = await operationOf(deps, change, validator, common);
  await assertStaysOperational(deps, { register, rules }, operation, change.isForced);
  const decided = await decide(deps, { register, rules, proposer }, operation, 'auto');
  const { txId, answer } = decided;
  assertAccepted(answer);
  return {
    txId,
    registerId: register.registerId,
    validatorId,
    status: 'submitted',
    ...presentVotes(decided),
  };
}
