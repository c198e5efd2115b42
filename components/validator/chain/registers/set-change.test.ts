import { afterEach, describe, expect, it } from 'vitest';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { AppError } from '#core/errors/errors.ts';
import { validatorSetHash } from '#core/ledger/consensus.ts';
import { memberDid } from '#core/ledger/did.ts';
import { buildOperation, governanceDraft } from '#core/ledger/governance/build.ts';
import { type Operation, operationSchema } from '#core/ledger/governance/operation.ts';
import { rulesJson } from '#core/ledger/governance/rules-json.ts';
import { possessionBytes } from '#core/ledger/possession.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { Cluster, quickPolicy } from '../../testing/cluster.ts';
import { testKey } from '../../testing/keys.ts';
import { ownerKey, registerId } from '../../testing/world.ts';

let cluster: Cluster;
afterEach(() => cluster.remove());

/** Applies a governance operation of the register's owner through any member and waits until it is sealed. */
async function decide(through: number, members: object): Promise<number> {
  const { state } = cluster.member(through).register;
  const nowMs = Date.now();
  const now = formatLedgerTimestamp(BigInt(nowMs) * 1000n);
  const operation: Operation = operationSchema.parse({
    proposerDid: memberDid(ownerKey.address),
    proposedAt: now,
    ...members,
  });
  const context = { docketNumber: state.height, timestamp: now, verifier: state.verifier };
  const payload = buildOperation(state.ledger, operation, context);
  const draft = governanceDraft(operation.operationType, payload);
  const { txId } = await cluster.submit(cluster.member(through), { ...draft, key: ownerKey });
  await waitFor(() => cluster.ledger.sealed.has(txId), { what: operation.operationType, deadlineMs: 20_000 });
  return cluster.ledger.dockets.findIndex(({ docket }) => docket.header.transactionIds.includes(txId));
}

/** The operation that adds a validator, with its proof of possession. */
function entryOf(validatorId: string, seed: number) {
  const { publicKey, sign } = testKey(seed);
  const entry = { validatorId, publicKey, algorithm: 'ED25519' };
  const proof = sign(possessionBytes({ registerId, ...entry }));
  return { ...entry, proofOfPossession: encodeBase64(proof) };
}

/** Signers of each docket's certificate, and the set that its header names. */
const seals = () =>
  cluster.ledger.dockets.map(({ docket, certificate }) => ({
    set: docket.header.validatorSetHash,
    signers: certificate.signatures.map(({ validatorId }) => validatorId),
  }));

async function load(from: number, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    await cluster.submit(cluster.member(from), { payload: { from, at: Date.now(), index } });
  }
}

describe('the set changes under load', { timeout: 60_000 }, () => {
  it('from five to four and back, exactly at the next height, without a missed docket', async () => {
    cluster = await new Cluster(5).open();
    await cluster.begin();
    await load(0, 5);
    const removed = await decide(1, { operationType: 'remove-validator', validatorId: 'validator-4' });
    await load(2, 5);
    const validatorEntry = entryOf('validator-4', 24);
    const added = await decide(3, { operationType: 'add-validator', validatorEntry });
    await load(0, 5);
    await cluster.sealed(18);
    const all = cluster.members.map(({ id }, index) => ({
      validatorId: id,
      publicKey: testKey(20 + index).publicKey,
      algorithm: 'ED25519' as const,
    }));
    const [five, four] = [validatorSetHash(all), validatorSetHash(all.slice(0, 4))];
    for (const [height, { set, signers }] of seals().entries()) {
      const isOut = height > removed && height <= added;
      expect(set, `docket ${height}`).toBe(isOut ? four : five);
      if (isOut) expect(signers).not.toContain('validator-4');
    }
    await cluster.agreed();
    const [first, ...others] = cluster.members.map(({ register }) => rulesJson(register.state.ledger));
    for (const other of others) expect(other).toBe(first);
    const before = cluster.ledger.dockets.length;
    await waitFor(
      async () => {
        await load(4, 1);
        return seals()
          .slice(before)
          .some(({ signers }) => signers.includes('validator-4'));
      },
      { what: 'a seal of the one that came back', deadlineMs: 20_000 },
    );
  });

  it('a raised quorum applies from the next docket on, and sealing stops without it', async () => {
    cluster = await new Cluster(4).open();
    await cluster.begin();
    const consensus = { signatureThresholdMin: 4 };
    const policy = { version: 2, ...quickPolicy, consensus };
    const raised = await decide(0, { operationType: 'policy-update', policy });
    await load(1, 1);
    await cluster.sealed(3);
    for (const [height, { signers }] of seals().entries()) {
      expect(signers.length, `docket ${height}`).toBeGreaterThanOrEqual(height > raised ? 4 : 3);
    }
    await cluster.agreed();
    expect(cluster.members.map(({ register }) => register.facts.quorum)).toEqual([4, 4, 4, 4]);
    await cluster.stop(cluster.member(3));
    const waiting = await cluster.submit(cluster.member(0));
    const { register } = cluster.member(0);
    await waitFor(() => register.machine.step === 'prevote', { what: 'votes that are too few' });
    expect(cluster.ledger.sealed.has(waiting.txId)).toBe(false);
    await cluster.start(cluster.member(3));
    await cluster.sealed(4);
  });
});

describe('a validator that leaves the set', { timeout: 60_000 }, () => {
  const leaver = 'validator-4';
  const isOut = () => cluster.member(4).register.state.members.every((each) => each.validatorId !== leaver);
  const isolate = () => {
    cluster.network.reaches = (from, to) => from !== leaver && to !== leaver;
  };
  const heal = () => {
    cluster.network.reaches = () => true;
    cluster.network.reconnect(leaver);
  };
  const remove = () => decide(0, { operationType: 'remove-validator', validatorId: leaver });
  const letIn = () => decide(0, { operationType: 'add-validator', validatorEntry: entryOf(leaver, 24) });
  const isSealed = (txIds: readonly string[]) => txIds.every((txId) => cluster.ledger.sealed.has(txId));
  const sealedByOthers = (txIds: readonly string[]) =>
    waitFor(() => isSealed(txIds), { what: 'what the leaver had accepted', deadlineMs: 20_000 });

  async function open(): Promise<void> {
    cluster = await new Cluster(5).open();
    await cluster.begin();
  }
  const acceptAtLeaver = async (count: number) => {
    const given = Array.from({ length: count }, (_, n) =>
      cluster.submit(cluster.member(4), { payload: { n } }),
    );
    return (await Promise.all(given)).map(({ txId }) => txId);
  };

  it('transfers its accepted transactions, none of which had been announced', async () => {
    await open();
    cluster.network.tamper = (from, _to, envelope) =>
      from === leaver && (envelope.kind === 'hint' || envelope.kind === 'proposal') ? undefined : envelope;
    const txIds = await acceptAtLeaver(30);
    await remove();
    await waitFor(isOut, { what: 'the leaver to know', deadlineMs: 20_000 });
    expect(isSealed(txIds)).toBe(false);
    cluster.network.tamper = (_from, _to, envelope) => envelope;
    await sealedByOthers(txIds);
    await waitFor(() => cluster.member(4).register.pool.size === 0, {
      what: 'nothing left there',
      deadlineMs: 20_000,
    });
  });

  it('learns of a missed removal, and what it still accepted is sealed', async () => {
    await open();
    isolate();
    await remove();
    const txIds = await acceptAtLeaver(3);
    await load(1, 3);
    heal();
    await sealedByOthers(txIds);
    await waitFor(isOut, { what: 'the leaver to know', deadlineMs: 20_000 });
    expect(cluster.member(4).register.status).toBe('Running');
  });

  it('while it is down transfers its accepted transactions when it starts', async () => {
    await open();
    isolate();
    const txIds = await acceptAtLeaver(3);
    await cluster.stop(cluster.member(4));
    await remove();
    cluster.network.reaches = () => true;
    await cluster.start(cluster.member(4));
    await sealedByOthers(txIds);
  });

  it('attests no docket of the time when it was out, although it fetches them later', async () => {
    await open();
    const removed = await remove();
    await waitFor(isOut, { what: 'the leaver to know', deadlineMs: 20_000 });
    isolate();
    await load(0, 5);
    const added = await letIn();
    const { signer } = cluster.member(4);
    const attested: string[] = [];
    signer.before = (request) => {
      if (request.kind === 'attestation') attested.push(request.docketHash);
    };
    cluster.ledger.before = (call) => {
      if (call === 'find') throw new AppError('unavailable', 'AWAY', 'The register service does not answer');
    };
    heal();
    await load(1, 1);
    await waitFor(() => cluster.member(4).register.state.height > added + 1, {
      what: 'the one that is let in again to have caught up',
      deadlineMs: 20_000,
    });
    const sealedMeanwhile = cluster.ledger.dockets.slice(removed + 1, added + 1);
    const hashes = sealedMeanwhile.map(({ docket }) => docket.header.hash);
    expect(hashes.length).toBeGreaterThan(0);
    expect(attested.length).toBeGreaterThan(0);
    expect(attested.filter((hash) => hashes.includes(hash))).toEqual([]);
    cluster.ledger.before = () => {};
  });

  it('works again when it is added again, also when no other validator could notify it', async () => {
    await open();
    await remove();
    await waitFor(isOut, { what: 'the leaver to know', deadlineMs: 20_000 });
    const elsewhere = await cluster.submitTo(cluster.member(4), cluster.sign().text);
    expect(elsewhere.status).toBe(404);
    isolate();
    await letIn();
    await waitFor(
      async () =>
        (await cluster.submitTo(cluster.member(4), cluster.sign({ payload: { back: 1 } }).text)).status ===
        200,
      { what: 'a register that is validated here again', deadlineMs: 20_000 },
    );
    expect(isOut()).toBe(false);
    heal();
    await cluster.agreed();
  });
});
