import { describe, expect, it } from 'vitest';
import { createVerifier, nodeEd25519 } from '../crypto/verify.ts';
import { encodeHex } from '../encoding/hex.ts';
import { canonicalBytes, canonicalJson } from '../encoding/jcs.ts';
import { utf8 } from '../encoding/text.ts';
import {
  genesisConfigText,
  genesisEnvelope,
  judgeControlRecord,
  parseControlRecord,
} from './control-record.ts';
import { buildRecord, parseRecord, recordLeaf } from './record.ts';
import { boundTxId, payloadHash, verifyTransactionSignature } from './transaction.ts';
import figures from './vectors/genesis.json' with { type: 'json' };

// Made by the independent program that also makes ledger.json.
describe('genesis by a second implementation', () => {
  const verifier = createVerifier(nodeEd25519());
  const control = parseControlRecord(figures.controlRecord);

  it('the control record keeps its bytes, and every signature in it verifies', () => {
    expect(canonicalJson(control)).toBe(canonicalJson(figures.controlRecord));
    expect(payloadHash(control)).toBe(figures.payloadHash);
    expect(judgeControlRecord(control, verifier)).toEqual([]);
    expect(genesisConfigText(control, 'acme')).toBe(figures.genesisConfig);
  });

  it('the envelope, its id, the sealed record and its leaf', () => {
    const { organizationId, systemWalletAddress, createdAt } = figures;
    const facts = {
      record: control,
      payloadHash: figures.payloadHash,
      organizationId,
      systemWalletAddress,
      createdAt,
    };
    const envelope = genesisEnvelope(facts);
    const sealed = parseRecord(utf8(figures.record));
    const signers = sealed.signatures.map(({ publicKey }) => publicKey);
    expect(boundTxId(envelope, signers)).toBe(figures.txId);
    const built = buildRecord({
      envelope,
      txId: figures.txId,
      payloadSize: canonicalBytes(control).length,
      senderAddress: systemWalletAddress,
      signatures: sealed.signatures,
      bound: true,
    });
    expect(canonicalJson(built)).toBe(figures.record);
    expect(encodeHex(recordLeaf(utf8(figures.record)))).toBe(figures.leaf);
    expect(sealed.signatures.every((each) => verifyTransactionSignature(verifier, sealed, each))).toBe(true);
  });
});
