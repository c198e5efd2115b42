import type { Verifier } from '#core/crypto/verify.ts';
import { scanJson, toValue } from '#core/encoding/json.ts';
import type { Violation } from '#core/errors/errors.ts';
import { validationViolation } from '#core/errors/validation-codes.ts';
import {
  type ControlRecord,
  genesisConfigText,
  initialValidators,
  judgeControlRecord,
  parseControlRecord,
} from '#core/ledger/control-record.ts';
import { buildState, type RegisterState } from '../sealing/state.ts';

/** Reads the control record of a genesis payload. Throws AppError invalid INVALID_CONTROL_RECORD or INVALID_POLICY. */
export function readControlRecord(payload: Uint8Array): ControlRecord {
  return parseControlRecord(toValue(scanJson(payload)));
}

/** Whether a register may begin with this record here: its claims hold, it is about its own register, and it names us. */
export function judgeGenesis(
  record: ControlRecord,
  registerId: string,
  validatorId: string,
  verifier: Verifier,
): Violation[] {
  const found = judgeControlRecord(record, verifier);
  if (record.registerId !== registerId) {
    found.push(
      validationViolation('VAL_CHAIN_002', 'Payload.registerId', 'The control record is of another register'),
    );
  }
  if (!initialValidators(record).some((member) => member.validatorId === validatorId)) {
    found.push(
      validationViolation('VAL_PERM_002', 'Payload.validators', `${validatorId} is not a validator of it`),
    );
  }
  return found;
}

/** The register before its docket 0. */
export function genesisState(record: ControlRecord, networkId: string): RegisterState {
  return buildState({
    registerId: record.registerId,
    networkId,
    height: 0,
    headHash: '',
    headTimestamp: '',
    logFrontier: [],
    members: initialValidators(record),
    policy: record.registerPolicy,
    roster: record.attestations,
  });
}

/** genesisConfig of docket 0, from the payload of its transaction. */
export function genesisConfigOf(payload: Uint8Array, networkId: string): string {
  return genesisConfigText(readControlRecord(payload), networkId);
}
