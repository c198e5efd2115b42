import { sha256Hex } from '#core/crypto/hash.ts';
import { createSigner } from '#core/crypto/sign.ts';
import { encodeHex } from '#core/encoding/hex.ts';
import { utf8 } from '#core/encoding/text.ts';
import {
  checkpointBody,
  checkpointNote,
  checkpointOrigin,
  NOTE_KINDS,
  noteLine,
} from '#core/ledger/checkpoint.ts';
import { logLeaf } from '#core/ledger/log.ts';
import { inclusion, leafHash, root } from '#core/ledger/merkle.ts';
import { presentPath } from '#core/ledger/proof-path.ts';
import { recordBytes, recordLeaf } from '#core/ledger/record.ts';
import type { PlacedRecord, SealedProof } from '../clients/ledger.ts';

const signer = createSigner({ algorithm: 'ED25519', privateKey: Buffer.alloc(32, 9) });

/** The proof of a step as a register service gives it: in a docket with another record, in a log with later dockets. */
export function proveStep({ record, position, sealedAt }: PlacedRecord, payload: Uint8Array): SealedProof {
  const bytes = recordBytes(record);
  const leaves = [recordLeaf(bytes), leafHash(utf8('another record'))];
  const { registerId } = record;
  const docket = {
    registerId,
    docketNumber: position.docket,
    hash: sha256Hex(`docket ${position.docket}`),
    merkleRoot: encodeHex(root(leaves)),
    timestamp: sealedAt,
    validatorSetHash: sha256Hex('validators'),
  };
  const log = Array.from({ length: position.docket + 3 }, (_, index) =>
    index === position.docket ? logLeaf(docket) : leafHash(utf8(`docket ${index}`)),
  );
  const origin = checkpointOrigin('test.installation', registerId);
  const key = { name: origin, kind: NOTE_KINDS.log, publicKey: signer.publicKey };
  const body = checkpointBody({ origin, size: log.length, rootHash: root(log) });
  return {
    record: bytes,
    payload,
    docket,
    inclusion: presentPath(inclusion(leaves, 0)),
    log: presentPath(inclusion(log, position.docket)),
    checkpoint: checkpointNote(body, [noteLine(key, signer.sign(utf8(body)))]),
    checkpointKey: key,
  };
}
