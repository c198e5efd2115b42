import { z } from 'zod';
import type { Verifier } from '../../crypto/verify.ts';
import { scanJson, toValue } from '../../encoding/json.ts';
import { isAppError, type Violation } from '../../errors/errors.ts';
import { validationViolation } from '../../errors/validation-codes.ts';
import {
  type ControlRecord,
  genesisConfigText,
  judgeControlRecord,
  parseControlRecord,
} from '../control-record.ts';
import { genesisRules, type LedgerRules } from '../governance/rules.ts';
import type { SealedRecord } from '../record.ts';

/** The state that docket 0 founds. */
export interface Genesis {
  readonly rules: LedgerRules;
  /** The installation that created the register; every certificate names it. */
  readonly networkId: string;
}

const configSchema = z.object({ networkId: z.string().min(1) });

/** Parses the control record of a genesis payload; undefined when it is none. */
export function findControlRecord(payload: Uint8Array): ControlRecord | undefined {
  try {
    return parseControlRecord(toValue(scanJson(payload)));
  } catch (error) {
    if (isAppError(error, 'invalid')) return undefined;
    throw error;
  }
}

function findNetworkId(genesisConfig: string): string | undefined {
  try {
    return configSchema.safeParse(toValue(scanJson(genesisConfig))).data?.networkId;
  } catch (error) {
    if (isAppError(error, 'invalid')) return undefined;
    throw error;
  }
}

const refuse = (field: string, message: string): Violation[] => [
  validationViolation('VAL_PERM_002', field, message),
];

/**
 * The rules that docket 0 founds, or the reason why it founds none. Its payload must be a control record of this
 * register whose attestations and proofs of possession verify, and genesisConfig must follow from it.
 */
export function readGenesis(
  record: SealedRecord,
  payload: Uint8Array,
  genesisConfig: string,
  verifier: Verifier,
): Genesis | Violation[] {
  const control = findControlRecord(payload);
  if (control === undefined) return refuse('payload', 'The payload of docket 0 is no control record.');
  if (control.registerId !== record.registerId) {
    return refuse('payload.registerId', 'The control record is of another register.');
  }
  const found = judgeControlRecord(control, verifier);
  if (found.length > 0) return found;
  const [signer] = record.signatures;
  const networkId = findNetworkId(genesisConfig);
  if (networkId === undefined || genesisConfigText(control, networkId) !== genesisConfig) {
    return refuse('genesisConfig', 'genesisConfig does not follow from the control record.');
  }
  if (signer === undefined) return refuse('record.signatures', 'The genesis is not signed.');
  return { rules: genesisRules(control, signer), networkId };
}
