import { encodeHex } from '#core/encoding/hex.ts';
import { canonicalJson } from '#core/encoding/jcs.ts';
import type { RegisterState } from '../../chain/state/state.ts';

/** Digest of everything that validity at a height may depend on. */
export function digestOf(state: RegisterState): string {
  const { height, headHash, headTimestamp, membersHash, ledger, log } = state;
  return canonicalJson({
    height,
    headHash,
    headTimestamp,
    membersHash,
    ledger,
    logRoot: height === 0 ? '' : encodeHex(log.root()),
  });
}
