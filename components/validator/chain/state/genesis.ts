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
import { genesisRules } from '#core/ledger/governance/rules.ts';
import { parseRecord } from '#core/ledger/record.ts';
import { failure } from '../../errors.ts';
import type { PooledTransaction } from '../pool/transaction.ts';
import { buildState, type RegisterState } from './state.ts';

/** Parses the control record of a genesis payload. Throws AppError invalid INVALID_CONTROL_RECORD or INVALID_POLICY. */
export function readControlRecord(payload: Uint8Array): ControlRecord {
  return parseControlRecord(toValue(scanJson(payload)));
}

/** Whether a register may begin with this record here: its claims hold, it names the register itself and this validator. */
export function judgeGenesis(
  record: ControlRecord,
  registerId: string,
  validatorId: string,
  verifier: Verifier,
): Violation[] {
  const found = judgeControlRecord(record, verifier);
  if (record.registerId !== registerId) {
    found.push(
      validationViolation(
        'VAL_CHAIN_002',
        'Payload.registerId',
        'The control record belongs to another register',
      ),
    );
  }
  if (!initialValidators(record).some((member) => member.validatorId === validatorId)) {
    found.push(
      validationViolation('VAL_PERM_002', 'Payload.validators', `${validatorId} is not named as a validator`),
    );
  }
  return found;
}

/** The sealable form of a genesis transaction. */
export type Genesis = Pick<PooledTransaction, 'record' | 'payload'>;

/** The state of the register before docket 0. Throws AppError like readControlRecord. */
export function genesisState(genesis: Genesis, networkId: string, verifier: Verifier): RegisterState {
  const control = readControlRecord(genesis.payload);
  const [signer] = parseRecord(genesis.record).signatures;
  if (signer === undefined) throw failure('VAL_STRUCT_005');
  const facts = {
    registerId: control.registerId,
    networkId,
    height: 0,
    headHash: '',
    headTimestamp: '',
    logFrontier: [],
    ledger: genesisRules(control, signer),
  };
  return buildState(facts, verifier);
}

/** genesisConfig of docket 0, from the payload of its transaction. */
export function genesisConfigOf(payload: Uint8Array, networkId: string): string {
  return genesisConfigText(readControlRecord(payload), networkId);
}
