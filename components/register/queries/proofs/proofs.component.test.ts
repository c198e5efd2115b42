import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { decodeHex } from '#core/encoding/hex.ts';
import { canonicalBytes } from '#core/encoding/jcs.ts';
import { AppError } from '#core/errors/errors.ts';
import { verifyCertificate } from '#core/ledger/certificate.ts';
import { parseCheckpoint, parseVerifierKey, verifyCheckpoint } from '#core/ledger/checkpoint.ts';
import { logLeaf } from '#core/ledger/log.ts';
import { verifyConsistency, verifyInclusion } from '#core/ledger/merkle.ts';
import { parseHashes, parsePath } from '#core/ledger/proof-path.ts';
import { recordLeaf } from '#core/ledger/record.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { testKey } from '../../testing/keys.ts';
import { startTestRegister, type TestRegister } from '../../testing/register.ts';

const owner = testKey(1);
const dockets = 9;

describe('proofs', () => {
  const verifier = createVerifier(nodeEd25519());
  let register: TestRegister;
  let registerId: string;
  const sealed: { txId: string; docketNumber: number }[] = [];
  const logRoots: string[] = [];

  const get = (rest: string, token = 'admin') =>
    register.call('GET', `/api/registers/${registerId}${rest}`, { token });

  let extra = 0;
  async function sealOne() {
    extra += 1;
    const body = { senderAddress: owner.walletAddress, payload: encodeBase64(canonicalBytes({ extra })) };
    await register.call('POST', `/api/registers/${registerId}/transactions`, { token: 'admin', body });
    return register.seal(registerId);
  }

  beforeAll(async () => {
    register = await startTestRegister('proofs', { members: 4 });
    registerId = await register.createRegister();
    logRoots.push((await get('/dockets/0')).body.logRoot);
    for (let number = 1; number < dockets; number += 1) {
      for (let count = 0; count < number; count += 1) {
        const payload = encodeBase64(canonicalBytes({ number, count }));
        const body = { senderAddress: owner.walletAddress, payload };
        await register.call('POST', `/api/registers/${registerId}/transactions`, { token: 'admin', body });
      }
      const { header } = await register.seal(registerId);
      logRoots.push(header.logRoot);
      sealed.push(...header.transactionIds.map((txId) => ({ txId, docketNumber: header.docketNumber })));
    }
  });
  afterAll(() => register.stop());

  it('prove every record in its docket, and the docket in the checkpoint', async () => {
    const vkey = parseVerifierKey((await get('/checkpoint/key')).text.trim());
    const { networkId, members } = await register.state(registerId);
    for (const { txId, docketNumber } of sealed) {
      const record = await get(`/transactions/${txId}/record`);
      const proof = (await get(`/transactions/${txId}/inclusion-proof`)).body;
      const docket = (await get(`/dockets/${docketNumber}`)).body;
      const claim = { leaf: recordLeaf(Buffer.from(record.text)), path: parsePath(proof.proofPath) };
      expect(verifyInclusion({ ...claim, ...proof }, decodeHex(docket.merkleRoot))).toBe(true);
      const checkpoint = parseCheckpoint(proof.checkpoint);
      expect(verifyCheckpoint(verifier, checkpoint, vkey)).toBe(true);
      const { leafIndex, treeSize, path } = proof.logProof;
      expect([leafIndex, treeSize]).toEqual([docketNumber, checkpoint.size]);
      const inLog = { leaf: logLeaf(docket), leafIndex, treeSize, path: parsePath(path) };
      expect(verifyInclusion(inLog, checkpoint.rootHash)).toBe(true);
      expect(
        verifyCertificate(proof.certificate, { members, networkId, registerId, verifier, docket }),
      ).toEqual([]);
    }
  });

  it('prove that every log is a prefix of every later one', async () => {
    for (let to = 1; to <= dockets; to += 1) {
      for (let from = 1; from <= to; from += 1) {
        const proof = (await get(`/proofs/consistency?from=${from}&to=${to}`)).body;
        const claim = {
          from,
          to,
          fromRoot: decodeHex(logRoots[from - 1] ?? ''),
          toRoot: decodeHex(logRoots[to - 1] ?? ''),
          path: parseHashes(proof.path),
        };
        expect(verifyConsistency(claim), `${from} to ${to}`).toBe(true);
      }
    }
    expect((await get('/proofs/consistency?from=1')).body.to).toBe(dockets);
    for (const query of ['from=0&to=1', 'from=3&to=2', 'from=1&to=99', 'from=x', '']) {
      expect((await get(`/proofs/consistency?${query}`)).status).toBe(400);
    }
  });

  it('sign a checkpoint once per size', async () => {
    const first = await get('/checkpoint');
    expect(first.headers['content-type']).toContain('text/plain');
    expect((await get('/checkpoint')).text).toBe(first.text);
    expect(parseCheckpoint(first.text)).toMatchObject({
      origin: `${register.runtime.installation}/registers/${registerId}`,
      size: dockets,
    });
  });

  it('include a cosignature of exactly the validators that answer, and request missing ones again', async () => {
    const keys = (await get('/checkpoint/cosigners')).text.trim().split('\n').map(parseVerifierKey);
    expect(keys.map(({ name }) => name)).toEqual(
      [0, 1, 2, 3].map((index) => `${register.runtime.installation}/validators/validator-${index}`),
    );
    const signers = async () => {
      const note = parseCheckpoint((await get('/checkpoint')).text);
      return keys.map((key) => verifyCheckpoint(verifier, note, key));
    };
    expect(await signers()).toEqual([true, true, true, true]);
    await sealOne();
    register.validators.away.add('validator-2');
    const cosign = register.validators.cosign;
    register.validators.cosign = async (at, request) => {
      const answer = await cosign(at, request);
      return at.validatorId === 'validator-1' ? { ...answer, timeSeconds: answer.timeSeconds + 1 } : answer;
    };
    expect(await signers()).toEqual([true, false, false, true]);
    register.validators.away.clear();
    register.validators.cosign = cosign;
    await waitFor(async () => (await signers()).every(Boolean), { deadlineMs: 10_000 });
  });

  it('work without a checkpoint while the wallet service is unreachable', async () => {
    const { header } = await sealOne();
    const sign = register.wallets.signCheckpoint;
    register.wallets.signCheckpoint = () =>
      Promise.reject(new AppError('unavailable', 'SERVICE_UNAVAILABLE', 'away'));
    const proof = await get(`/transactions/${header.transactionIds[0]}/inclusion-proof`);
    const checkpoint = await get('/checkpoint');
    register.wallets.signCheckpoint = sign;
    expect(proof.body).toMatchObject({ checkpoint: null, logProof: { treeSize: dockets + 2 } });
    expect(checkpoint.status).toBe(503);
    expect((await get('/checkpoint')).status).toBe(200);
  });

  it('are checked for anonymous callers, and a flipped byte is refused', async () => {
    const { txId } = sealed[20] ?? { txId: '' };
    const proof = (await get(`/transactions/${txId}/inclusion-proof`)).body;
    const { transactionHash, merkleRoot, proofPath, leafIndex, treeSize, docketNumber } = proof;
    const body = { transactionHash, merkleRoot, proofPath, leafIndex, treeSize, docketNumber };
    const check = (change: object) =>
      register.call('POST', `/api/registers/${registerId}/inclusion-proofs/verify`, {
        body: { ...body, ...change },
      });
    const good = await check({});
    expect(good.body).toMatchObject({ isValid: true, computedRoot: merkleRoot, ledgerAnchored: 'verified' });
    const flipped = `${transactionHash[0] === '0' ? '1' : '0'}${transactionHash.slice(1)}`;
    expect((await check({ transactionHash: flipped })).body).toMatchObject({
      isValid: false,
      ledgerAnchored: 'failed',
    });
    expect((await check({ leafIndex: 0 })).body.isValid).toBe(leafIndex === 0);
    expect((await check({ docketNumber: 0 })).body).toMatchObject({
      isValid: true,
      ledgerAnchored: 'failed',
    });
    expect((await check({ docketNumber: 99 })).body.ledgerAnchored).toBe('failed');
    const bare = await check({ leafIndex: undefined, treeSize: undefined, docketNumber: undefined });
    expect(bare.body).toMatchObject({ isValid: true, ledgerAnchored: null });
    expect((await check({ merkleRoot: 'x' })).status).toBe(400);
  });

  it('include receipts', async () => {
    const { txId, docketNumber } = sealed[5] ?? { txId: '', docketNumber: 0 };
    const receipt = (await get(`/transactions/${txId}/receipt`)).body;
    expect(receipt).toMatchObject({ transactionId: txId, registerId, docketNumber, version: 1 });
    expect(receipt.signatures).toHaveLength(3);
    const addresses = register.members.map((member) => member.key.walletAddress);
    for (const signature of receipt.signatures) expect(addresses).toContain(signature.validatorAddress);
    expect((await get(`/transactions/${txId}/receipt`)).body.receiptId).toBe(receipt.receiptId);
    expect((await get(`/transactions/${'0'.repeat(64)}/receipt`)).status).toBe(404);
    expect((await get(`/transactions/${txId}/receipt`, 'stranger')).status).toBe(404);
  });
});
