import { describe, expect, it } from 'vitest';
import { walletAddress } from '../crypto/address.ts';
import { createSigner } from '../crypto/sign.ts';
import { createVerifier, nodeEd25519 } from '../crypto/verify.ts';
import { decodeBase64Any, encodeBase64 } from '../encoding/base64.ts';
import { decodeHex, encodeHex } from '../encoding/hex.ts';
import { canonicalJson } from '../encoding/jcs.ts';
import { scanJson } from '../encoding/json.ts';
import { utf8 } from '../encoding/text.ts';
import { verifyVote, voteBytes, voteText } from './attestation.ts';
import { type Certificate, type CertificateContext, verifyCertificate } from './certificate.ts';
import {
  checkpointBody,
  checkpointNote,
  checkpointOrigin,
  cosignatureBlob,
  cosignatureBytes,
  noteLine,
  parseCheckpoint,
  parseVerifierKey,
  verifierKey,
  verifyCheckpoint,
} from './checkpoint.ts';
import { quorum, signBytes, validatorSetHash } from './consensus.ts';
import { buildHeader, docketHash, judgeHeader, judgeSuccession } from './docket.ts';
import { logLeaf } from './log.ts';
import {
  consistency,
  Frontier,
  inclusion,
  leafHash,
  root,
  rootOfInclusion,
  verifyConsistency,
  verifyInclusion,
} from './merkle.ts';
import { attestationBytes, attestationDigest, verifyAttestation } from './owner-attestation.ts';
import { possessionBytes, verifyPossession } from './possession.ts';
import { parsePath, presentHashes, presentPath } from './proof-path.ts';
import { buildRecord, parseRecord, recordBytes, recordLeaf } from './record.ts';
import {
  boundTxId,
  matchPayload,
  payloadHash,
  signingDigest,
  type TransactionEnvelope,
  verifyTransactionSignature,
} from './transaction.ts';
import { at, readLedgerVectors } from './vectors/ledger-vectors.ts';

const vectors = readLedgerVectors();
const verifier = createVerifier(nodeEd25519());
const signerOf = (index: number) =>
  createSigner({ algorithm: 'ED25519', privateKey: decodeHex(at(vectors.keys, index).seed) });
const register = '0123456789abcdef0123456789abcdef';

describe('keys', () => {
  it.each(vectors.keys)('key $publicKey has address $address', ({ seed, publicKey, address }) => {
    const signer = createSigner({ algorithm: 'ED25519', privateKey: decodeHex(seed) });
    expect(encodeBase64(signer.publicKey)).toBe(publicKey);
    expect(walletAddress('ED25519', signer.publicKey)).toBe(address);
  });
});

describe('payload hash', () => {
  it.each(vectors.payloadHash)('of $canonical', ({ payload, canonical, payloadHash: expected }) => {
    expect(canonicalJson(payload)).toBe(canonical);
    expect(payloadHash(payload)).toBe(expected);
    expect(matchPayload(scanJson(JSON.stringify(payload)), expected)?.form).toBe('jcs');
  });
});

describe('transactions', () => {
  const [user] = vectors.keys;
  it.each(vectors.transactions)('transaction $txId', (each) => {
    const envelope: TransactionEnvelope = each.envelope;
    const publicKey = user?.publicKey ?? '';
    expect(payloadHash(each.payload)).toBe(envelope.payloadHash);
    expect(boundTxId(envelope, [publicKey])).toBe(each.txId);
    const digest = signingDigest(each.txId, envelope.payloadHash);
    expect(encodeHex(digest)).toBe(each.signingDigest);
    const signatureValue = encodeBase64(signerOf(0).signDigest(digest));
    const signature = { publicKey, signatureValue, algorithm: 'ED25519' } as const;
    const record = buildRecord({
      envelope,
      txId: each.txId,
      payloadSize: utf8(canonicalJson(each.payload)).length,
      senderAddress: user?.address ?? '',
      signatures: [signature],
      bound: true,
    });
    const bytes = recordBytes(record);
    expect(Buffer.from(bytes).toString()).toBe(each.record);
    expect(encodeHex(recordLeaf(bytes))).toBe(each.leaf);
    const parsed = parseRecord(utf8(each.record));
    expect(canonicalJson(parsed)).toBe(each.record);
    expect(verifyTransactionSignature(verifier, parsed, signature)).toBe(true);
    expect(verifyTransactionSignature(verifier, { ...parsed, txId: 'f'.repeat(64) }, signature)).toBe(false);
  });
});

describe('dockets', () => {
  it('hash of the validator set, in any order of members', () => {
    const { members, validatorSetHash: expected } = vectors.validatorSet;
    expect(validatorSetHash(members)).toBe(expected);
    expect(validatorSetHash(members.toReversed())).toBe(expected);
  });

  it('headers have the published figures and are valid one after the other', () => {
    const log = Frontier.empty();
    const leaves = [[at(vectors.transactions, 0)], vectors.transactions.slice(1)].map((chosen) =>
      chosen.map((each) => decodeHex(each.leaf)),
    );
    let head: { docketNumber: number; hash: string; timestamp: string } | undefined;
    for (const [number, docket] of vectors.dockets.entries()) {
      const own = at(leaves, number);
      const draft = { ...docket, sizeBytes: 1, ...(number === 0 ? { genesisConfig: '{}' } : {}) };
      expect(docketHash(docket)).toBe(docket.hash);
      expect(encodeHex(logLeaf(docket))).toBe(docket.logLeaf);
      const header = buildHeader(draft, own, log);
      expect(header).toMatchObject({
        hash: docket.hash,
        merkleRoot: docket.merkleRoot,
        logRoot: docket.logRoot,
      });
      expect(judgeSuccession(header, head)).toEqual([]);
      expect(judgeHeader(header, own, log)).toEqual([]);
      log.append(logLeaf(header));
      expect(encodeHex(log.root())).toBe(docket.logRoot);
      head = header;
    }
  });

  it('inclusion of a record in its docket', () => {
    const { leaf, leafIndex, treeSize, merkleRoot, proofPath } = vectors.inclusion;
    const leaves = vectors.transactions.slice(1).map((each) => decodeHex(each.leaf));
    expect(presentPath(inclusion(leaves, leafIndex))).toEqual(proofPath);
    const claim = { leaf: decodeHex(leaf), leafIndex, treeSize, path: parsePath(proofPath) };
    expect(verifyInclusion(claim, decodeHex(merkleRoot))).toBe(true);
  });
});

describe('trees', () => {
  const leaves = Array.from({ length: 13 }, (_, index) => leafHash(utf8(String(index))));

  it.each(Object.entries(vectors.tree.roots))('root of %s leaves', (size, expected) => {
    expect(encodeHex(root(leaves.slice(0, Number(size))))).toBe(expected);
  });

  it.each(vectors.tree.inclusion)(
    'inclusion of $leafIndex in $treeSize',
    ({ leafIndex, treeSize, proofPath }) => {
      const own = leaves.slice(0, treeSize);
      expect(presentPath(inclusion(own, leafIndex))).toEqual(proofPath);
      const claim = { leaf: at(own, leafIndex), leafIndex, treeSize, path: parsePath(proofPath) };
      expect(rootOfInclusion(claim)).toEqual(root(own));
    },
  );

  it.each(vectors.tree.consistency)('consistency of $from with $to', ({ from, to, path }) => {
    const own = leaves.slice(0, to);
    expect(presentHashes(consistency(own, from))).toEqual(path);
    const hashes = path.map((hash) => decodeHex(hash));
    const claim = { from, to, fromRoot: root(leaves.slice(0, from)), toRoot: root(own), path: hashes };
    expect(verifyConsistency(claim)).toBe(true);
  });
});

describe('consensus', () => {
  const docket = at(vectors.dockets, 1);

  it.each(vectors.consensus)('sign bytes of type $type, round $round, nil $nil', (each) => {
    const named = { docketHash: docket.hash, merkleRoot: docket.merkleRoot, logRoot: docket.logRoot };
    const { validatorSetHash: setHash } = vectors.validatorSet;
    const message = signBytes({ ...each, docket: each.nil ? undefined : named, validatorSetHash: setHash });
    expect(encodeHex(message)).toBe(each.signBytes);
    expect(encodeBase64(signerOf(2).sign(message))).toBe(each.signature);
  });

  const context: CertificateContext = {
    members: vectors.validatorSet.members,
    networkId: 'acme',
    registerId: register,
    verifier,
    docket,
  };
  const certificate: Certificate = vectors.certificate;
  const codeOf = (changed: Partial<Certificate>, changedContext: Partial<CertificateContext> = {}) =>
    verifyCertificate({ ...certificate, ...changed }, { ...context, ...changedContext }).map(
      ({ code }) => code,
    );

  it('certificate verifies with a quorum of three of four', () => {
    expect(quorum(4)).toBe(3);
    expect(codeOf({})).toEqual([]);
    expect(codeOf({}, { members: context.members.toReversed() })).toEqual([]);
  });

  it('certificate is refused when any part of it changes', () => {
    const { signatures } = certificate;
    expect(codeOf({ signatures: signatures.slice(0, 2) })).toEqual(['VAL_CERT_003']);
    expect(codeOf({}, { signatureThresholdMin: 4 })).toEqual(['VAL_CERT_003']);
    expect(codeOf({ round: 1 })).toEqual(['VAL_CERT_002']);
    expect(codeOf({}, { networkId: 'other' })).toEqual(['VAL_CERT_002']);
    expect(codeOf({}, { registerId: 'f'.repeat(32) })).toEqual(['VAL_CERT_002']);
    expect(codeOf({ logRoot: docket.merkleRoot })).toEqual(['VAL_CERT_001']);
    expect(codeOf({ height: 2 })).toEqual(['VAL_CERT_001']);
    expect(codeOf({}, { members: context.members.slice(0, 3) })).toEqual(['VAL_CERT_001']);
    const first = at(signatures, 0);
    expect(codeOf({ signatures: [first, first, at(signatures, 1)] })).toEqual(['VAL_CERT_002']);
    expect(codeOf({ signatures: signatures.toReversed() })).toEqual(['VAL_CERT_002']);
    const foreign = { ...first, signature: at(signatures, 1).signature };
    expect(codeOf({ signatures: [foreign, ...signatures.slice(1)] })).toEqual(['VAL_CERT_002']);
    const broken = { ...first, signature: 'not base64' };
    expect(codeOf({ signatures: [broken, ...signatures.slice(1)] })).toEqual(['VAL_CERT_002']);
    const renamed = { ...first, validatorId: 'validator-main-3' };
    expect(codeOf({ signatures: [renamed, ...signatures.slice(1)] })).toEqual(['VAL_CERT_002']);
    const moved = { ...first, timestamp: '2026-11-21T10:00:11.9000000+00:00' };
    expect(codeOf({ signatures: [moved, ...signatures.slice(1)] })).toEqual(['VAL_CERT_002']);
  });

  it('attestation: text, signature, address of the key', () => {
    const { publicKey, address } = at(vectors.keys, 2);
    const facts = {
      docketHash: docket.hash,
      validatorAddress: address,
      approved: true,
      timestamp: '2026-11-21T10:00:12.0000000+00:00',
    };
    expect(voteText(facts)).toBe(vectors.attestation.text);
    expect(encodeHex(signerOf(2).sign(voteBytes(facts)))).toBe(vectors.attestation.signature);
    const { algorithm, signature } = vectors.attestation;
    const vote = { ...facts, algorithm, signature, publicKey, validatorId: 'validator-main-0' };
    expect(verifyVote(vote, verifier)).toBe(true);
    expect(verifyVote({ ...vote, approved: false }, verifier)).toBe(false);
    expect(verifyVote({ ...vote, validatorAddress: at(vectors.keys, 3).address }, verifier)).toBe(false);
    expect(verifyVote({ ...vote, signature: 'zz' }, verifier)).toBe(false);
  });

  it('proof of possession', () => {
    const facts = {
      registerId: register,
      validatorId: 'validator-main-0',
      publicKey: at(vectors.keys, 2).publicKey,
      algorithm: 'ED25519',
    } as const;
    const signature = decodeBase64Any(vectors.proofOfPossession.signature);
    expect(Buffer.from(possessionBytes(facts)).toString()).toBe(vectors.proofOfPossession.bytes);
    expect(verifyPossession(verifier, facts, signature)).toBe(true);
    expect(verifyPossession(verifier, { ...facts, validatorId: 'validator-main-1' }, signature)).toBe(false);
    expect(verifyPossession(verifier, { ...facts, publicKey: '!' }, signature)).toBe(false);
  });
});

describe('owner attestation', () => {
  const { attestationData: data, dataToSign, signature } = vectors.ownerAttestation;
  const bytes = attestationBytes(data);
  const signed = {
    publicKey: at(vectors.keys, 0).publicKey,
    algorithm: 'ED25519',
    signature: decodeBase64Any(signature),
  };

  it('digest and signature', () => {
    expect(encodeHex(attestationDigest(bytes))).toBe(dataToSign);
    expect(encodeBase64(signerOf(0).signDigest(attestationDigest(bytes)))).toBe(signature);
    expect(verifyAttestation(verifier, bytes, data.subject, signed)).toBe(true);
  });

  it('another subject, key, algorithm or text is refused', () => {
    const other = `did:platform:w:${at(vectors.keys, 1).address}`;
    expect(verifyAttestation(verifier, bytes, other, signed)).toBe(false);
    const key = { ...signed, publicKey: at(vectors.keys, 1).publicKey };
    expect(verifyAttestation(verifier, bytes, data.subject, key)).toBe(false);
    expect(verifyAttestation(verifier, bytes, data.subject, { ...signed, algorithm: 'Ed25519' })).toBe(false);
    const renamed = attestationBytes({ ...data, registerName: 'loans' });
    expect(verifyAttestation(verifier, renamed, data.subject, signed)).toBe(false);
  });
});

describe('checkpoint', () => {
  const { body, note, vkey, cosignerVkeys } = vectors.checkpoint;
  const log = parseVerifierKey(vkey);
  const cosigners = cosignerVkeys.map(parseVerifierKey);

  it('keys, body, lines and note have the published bytes', () => {
    const origin = checkpointOrigin('acme', register);
    const logRoot = decodeHex(at(vectors.dockets, 1).logRoot);
    expect(checkpointBody({ origin, size: 2, rootHash: logRoot })).toBe(body);
    expect(verifierKey({ name: origin, kind: 1, publicKey: signerOf(7).publicKey })).toBe(vkey);
    expect(cosigners.map(verifierKey)).toEqual(cosignerVkeys);
    const lines = [
      noteLine(log, signerOf(7).sign(utf8(body))),
      ...cosigners.map((key, index) => {
        const time = 1795255212 + index;
        return noteLine(key, cosignatureBlob(time, signerOf(2 + index).sign(cosignatureBytes(body, time))));
      }),
    ];
    expect(checkpointNote(body, lines)).toBe(note);
  });

  it('verifies for the log and each cosigner', () => {
    const parsed = parseCheckpoint(note);
    expect(parsed).toMatchObject({ origin: checkpointOrigin('acme', register), size: 2, body });
    for (const key of [log, ...cosigners]) expect(verifyCheckpoint(verifier, parsed, key)).toBe(true);
    expect(verifyCheckpoint(verifier, parsed, { ...log, publicKey: signerOf(0).publicKey })).toBe(false);
    expect(verifyCheckpoint(verifier, parsed, { ...log, name: 'another' })).toBe(false);
  });

  it('any flipped byte is refused', () => {
    for (let index = 0; index < note.length; index += 1) {
      const swapped = note.charAt(index) === 'A' ? 'B' : 'A';
      const flipped = note.slice(0, index) + swapped + note.slice(index + 1);
      let verified = false;
      try {
        const parsed = parseCheckpoint(flipped);
        verified = [log, ...cosigners].every((key) => verifyCheckpoint(verifier, parsed, key));
      } catch {
        verified = false;
      }
      expect(verified, `character ${index}`).toBe(false);
    }
  });
});
