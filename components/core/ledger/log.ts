import { canonicalBytes } from '../encoding/jcs.ts';
import { leafHash } from './merkle.ts';

/** The leaf of one docket in the register log. */
interface LogEntry {
  readonly registerId: string;
  readonly docketNumber: number;
  /** Lower-case hex, as in the docket. */
  readonly hash: string;
  readonly merkleRoot: string;
  /** As in the docket, verbatim. */
  readonly timestamp: string;
  readonly validatorSetHash: string;
}

/** Hash of a docket's leaf in the register log, 32 bytes; a docket header fits as it is. */
export function logLeaf(entry: LogEntry): Uint8Array {
  const { registerId, docketNumber, hash, merkleRoot, timestamp, validatorSetHash } = entry;
  return leafHash(
    canonicalBytes({ registerId, docketNumber, hash, merkleRoot, timestamp, validatorSetHash }),
  );
}
