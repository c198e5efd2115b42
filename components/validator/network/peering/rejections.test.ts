import { afterEach, describe, expect, test } from 'vitest';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { encodeHex } from '#core/encoding/hex.ts';
import { type ConsensusVote, verifyVote, voteBytes } from '#core/ledger/attestation.ts';
import { signBytes } from '#core/ledger/consensus.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { buildDocket, docketValue } from '../../chain/building/docket.ts';
import { signable } from '../../chain/sealing/sign-bytes.ts';
import type { RegisterState } from '../../chain/state/state.ts';
import { Cluster, type Member } from '../../testing/cluster.ts';
import { testKey } from '../../testing/keys.ts';
import { registerId } from '../../testing/world.ts';
import type { Envelope, ProposalEnvelope } from '../transport/transport.ts';

const verifier = createVerifier(nodeEd25519());
const clusters: Cluster[] = [];
afterEach(async () => {
  for (const cluster of clusters.splice(0)) await cluster.remove();
});

async function openCluster(size: number): Promise<Cluster> {
  const cluster = new Cluster(size);
  clusters.push(cluster);
  await cluster.open();
  await cluster.begin();
  await cluster.agreed();
  return cluster;
}

/** The same proposal, signed by its proposer, for a docket that names a sealing validator of no set. */
function broken(
  equivocator: Member,
  seed: number,
  envelope: ProposalEnvelope,
  state: RegisterState,
): Envelope {
  const { pool } = equivocator.register;
  const transactions = envelope.header.transactionIds.flatMap((txId) => pool.find(txId)?.transaction ?? []);
  const stranger = testKey(77).address;
  const nowMicros = BigInt(Date.now()) * 1000n;
  const docket = buildDocket(state, transactions, { validatorAddress: stranger, nowMicros });
  const { kind, height, round, polRound } = envelope.proposal;
  const plain = { kind, height, round, polRound, value: docketValue(docket.header) };
  const signature = encodeBase64(
    testKey(seed).sign(signBytes(signable(state, plain, plain.value.timestamp))),
  );
  const proposal = { ...plain, validatorId: equivocator.id, signature };
  const recordHashes = docket.transactions.map(({ leaf }) => encodeHex(leaf));
  return { kind: 'proposal', registerId, proposal, header: docket.header, recordHashes };
}

describe('a proposal that breaks the rules', { timeout: 40_000 }, () => {
  test('is rejected by every correct member in a signed vote that reaches all, and another docket is sealed', async () => {
    const cluster = await openCluster(4);
    const place = cluster.ledger.dockets.length % 4;
    const equivocator = cluster.member(place);
    const honest = cluster.members.filter((member) => member !== equivocator).map(({ id }) => id);
    const { state } = equivocator.register;
    cluster.network.tamper = (from, _to, envelope) => {
      const isOwn =
        from === equivocator.id && envelope.kind === 'proposal' && envelope.proposal.height === state.height;
      return isOwn && envelope.proposal.validatorId === equivocator.id
        ? broken(equivocator, 20 + place, envelope, state)
        : envelope;
    };
    await cluster.submit(equivocator);
    await cluster.sealed(2);
    await cluster.agreed();
    for (const { register, id } of cluster.members) {
      const heard = () => register.rejections.all.filter(({ vote }) => vote.validatorId !== equivocator.id);
      const senders = () => new Set(heard().map(({ vote }) => vote.validatorId));
      await waitFor(() => senders().size === 3, { what: `three rejections at ${id}` });
      expect([...senders()].toSorted()).toEqual(honest);
      for (const { docketNumber, vote } of heard()) {
        expect([docketNumber, vote.approved, verifyVote(vote, verifier)]).toEqual([1, false, true]);
        expect(vote.reason).toMatch(/^VAL_CERT_001: /);
        expect(vote.docketHash).not.toBe(cluster.ledger.dockets[1]?.docket.header.hash);
      }
      expect(register.status).toBe('Running');
    }
    expect(cluster.ledger.attestations.every(({ approved }) => approved)).toBe(true);
  });

  test('yields no stored rejection that is unsigned, late or from another member', async () => {
    const cluster = await openCluster(4);
    const hearer = cluster.member(0);
    const { engine, register } = hearer;
    const { height } = register.state;
    const { publicKey, address: validatorAddress, sign } = testKey(21);
    const facts = { docketHash: 'aa'.repeat(32), validatorAddress, approved: false, timestamp: 't' };
    const good: ConsensusVote = {
      ...facts,
      signature: encodeHex(sign(voteBytes(facts))),
      reason: 'VAL_SIZE_001',
      validatorId: 'validator-1',
      algorithm: 'ED25519',
      publicKey,
    };
    const tell = (vote: ConsensusVote, from = 'validator-1', docketNumber = height) =>
      engine.peering.receive(from, { kind: 'attestation', registerId, docketNumber, vote });
    tell(good, 'validator-2');
    tell({ ...good, docketHash: 'bb'.repeat(32) });
    tell({ ...good, publicKey: testKey(22).publicKey });
    const { reason: _reason, ...silent } = good;
    tell(silent);
    expect(hearer.messages.filter((text) => text === 'a validator sent a faulty message')).toHaveLength(2);
    tell(good, 'validator-1', height + 1);
    tell(good, 'validator-9');
    expect(register.rejections.all).toEqual([]);
    expect(register.machine.step).toBe('idle');
    tell(good);
    tell(good);
    expect(register.rejections.all).toEqual([{ docketNumber: height, vote: good }]);
    // A rejection affects no round, and no docket contains it.
    expect(register.machine.step).toBe('idle');
    await cluster.submit(cluster.member(2));
    await cluster.sealed(2);
    expect(cluster.ledger.attestations.every(({ approved }) => approved)).toBe(true);
  });
});
